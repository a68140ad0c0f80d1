"""Files of texts or pairs with a score."""

import dataclasses

import numpy as np

import albert_tf
from albert_tf_cli.tasks import baselines
from albert_tf_cli.tasks.pages import TEXTS, Page
from albert_tf_cli.tasks.task import Examples, Task, read_labelled
from albert_tf_lite.answers import cosines


class Regression(Task):
    """A number per text or pair, such as the similarity of two texts."""

    name = "regression"
    takes_columns = True
    skips_invalid = True
    page = Page(("score",), lambda answer, x: [f"{answer(x)['score']:.3f}"], TEXTS)

    def read(self, path, columns, arguments=None, skip_invalid=False):
        found = read_labelled(path, columns, arguments)
        found = found.without_invalid() if skip_invalid else found
        return Examples(found.x, found.scores(), {"pairs": found.pairs})

    def predict(self, model, x, batch_size):
        return np.ravel(super().predict(model, x, batch_size))

    def scores(self, examples, predicted):
        return albert_tf.evaluation.regression_scores(examples.y, predicted)

    def baselines(self, train, dev):
        predictors = {baselines.CONSTANT: baselines.mean(train.y)}
        if isinstance(train.x, tuple):
            if cosine := baselines.cosine(train):
                predictors[baselines.COSINE] = cosine
        elif ridge := baselines.linear_numbers(train):
            predictors[baselines.RIDGE] = ridge
        return predictors


class TextEmbedding(Regression):
    """Pairs with their similarity; `predict` compares two texts per line."""

    name = "text-embedding"

    def read(self, path, columns, arguments=None, skip_invalid=False):
        examples = super().read(path, columns, {"pairs": True}, skip_invalid)
        return dataclasses.replace(examples, arguments={})

    def predict(self, model, x, batch_size):
        return cosines(*(Task.predict(self, model, part, batch_size) for part in x))

    def scores(self, examples, predicted):
        scores = super().scores(examples, predicted)
        # Cosines have another range than the labels.
        return {name: scores[name] for name in ("pearson", "spearman")}

    def fields(self, model):
        return ("text", "text_pair")

    def inputs(self, fields, lines):
        # Without a tab in any line they are single texts, each of which has a vector.
        is_single = not any("\t" in line for line in lines)
        return super().inputs(fields[:1] if is_single else fields, lines)

    def cells(self, table, roles):
        # A pair unless there is one text, or one is named.
        is_pair = len(table.header) > 1
        if table.has_header:
            is_pair = "text_b" in table.columns
        if table.given == {"text"} or not is_pair:
            roles = roles[:1]
        return super().cells(table, roles)
