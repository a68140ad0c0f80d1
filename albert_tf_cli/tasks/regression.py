"""Texts or pairs of texts with a number each; also pairs to train an embedder."""

from albert_tf_cli.tasks.classification import read_labelled
from albert_tf_cli.tasks.task import Examples, Task


class Regression(Task):
    """A number per text or pair, such as the similarity of two texts."""

    name = "regression"

    def read(self, path, columns, known=None):
        data = read_labelled(path, columns, known)
        return Examples(data.x, data.scores(), {"pairs": data.pairs})

    def scores(self, model, examples, batch_size):
        from albert_tf.evaluation import regression_scores

        predicted = model.predict(examples.x, batch_size=batch_size, verbose=0)
        return regression_scores(examples.y, predicted)


class TextEmbedding(Task):
    """Pairs with their similarity; `predict` compares two texts per line."""

    name = "text-embedding"

    def read(self, path, columns, known=None):
        data = read_labelled(path, columns, {"pairs": True})
        return Examples(data.x, data.scores())

    def scores(self, model, examples, batch_size):
        from albert_tf.evaluation import regression_scores
        from albert_tf_lite.answers import cosines_of

        vectors = (model.predict(part, batch_size, verbose=0) for part in examples.x)
        scores = regression_scores(examples.y, cosines_of(*vectors))
        # Cosines have another range than the labels.
        return {name: scores[name] for name in ("pearson", "spearman")}

    def fields(self, model):
        return ("text", "text_pair")
