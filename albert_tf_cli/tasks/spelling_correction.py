"""Texts with wrong characters and their corrections."""

from albert_tf_cli.tasks.task import Examples, Task


class SpellingCorrection(Task):
    """A misspelt and a correct text of the same length."""

    name = "spelling-correction"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_spelling

        return Examples(*read_spelling(path))

    def scores(self, model, examples, batch_size):
        from albert_tf.evaluation import spelling_scores

        answers = model.correct(examples.x, batch_size)
        predicted = [answer["target"] for answer in answers]
        return spelling_scores(examples.x, examples.y, predicted)

    def cells(self, answer):
        errors = (
            f"{wrong}→{right}@{place}" for wrong, right, place in answer["errors"]
        )
        return [answer["target"], " ".join(errors)]
