"""Texts or pairs of texts with a number, a correction or a summary."""

from albert_tf_cli.tasks.classification import read_labelled
from albert_tf_cli.tasks.task import Examples, Task


class Regression(Task):
    """A number per text or pair, such as the similarity of two texts."""

    name = "regression"

    def read(self, path, columns, known=None):
        data = read_labelled(path, columns, known)
        return Examples(data.x, data.scores(), {"pairs": data.pairs})

    def scores(self, examples, predicted):
        from albert_tf.evaluation import regression_scores

        return regression_scores(examples.y, predicted)


class TextEmbedding(Task):
    """Pairs with their similarity; `predict` compares two texts per line."""

    name = "text-embedding"

    def read(self, path, columns, known=None):
        data = read_labelled(path, columns, {"pairs": True})
        return Examples(data.x, data.scores())

    def predict(self, model, x, batch_size):
        from albert_tf_lite.answers import cosines_of

        vectors = (model.predict(part, batch_size, verbose=0) for part in x)
        return cosines_of(*vectors)

    def scores(self, examples, predicted):
        from albert_tf.evaluation import regression_scores

        scores = regression_scores(examples.y, predicted)
        # Cosines have another range than the labels.
        return {name: scores[name] for name in ("pearson", "spearman")}

    def fields(self, model):
        return ("text", "text_pair")


class SpellingCorrection(Task):
    """A misspelt and a correct text of the same length."""

    name = "spelling-correction"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_spelling

        return Examples(*read_spelling(path))

    def predict(self, model, x, batch_size):
        return [answer["target"] for answer in model.correct(x, batch_size)]

    def scores(self, examples, predicted):
        from albert_tf.evaluation import spelling_scores

        return spelling_scores(examples.x, examples.y, predicted)

    def cells(self, answer):
        errors = (
            f"{wrong}→{right}@{place}" for wrong, right, place in answer["errors"]
        )
        return [answer["target"], " ".join(errors)]


class Summarization(Task):
    """An article and its summary, sentences of the article; scored by ROUGE."""

    name = "summarization"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_articles

        return Examples(*read_articles(path))

    def scores(self, examples, predicted):
        from albert_tf.evaluation import rouge_scores

        return rouge_scores([answer["summary"] for answer in predicted], examples.y)

    def cells(self, answer):
        return [" ".join(answer["summary"].split())]
