"""Articles and their summaries, which consist of sentences of the article."""

from albert_tf_cli.tasks.task import Examples, Task


class Summarization(Task):
    """An article and its summary; scored by ROUGE."""

    name = "summarization"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_articles

        return Examples(*read_articles(path))

    def scores(self, model, examples, batch_size):
        from albert_tf.evaluation import rouge_scores

        found = model.predict(examples.x, batch_size=batch_size, verbose=0)
        return rouge_scores([answer["summary"] for answer in found], examples.y)

    def cells(self, answer):
        return [" ".join(answer["summary"].split())]
