"""Texts with entities: files of tagged columns, JSON of annotation tools."""

from rich.table import Table

from albert_tf_cli.common import shown
from albert_tf_cli.tasks.task import Examples, Report, Task
from albert_tf_lite.errors import AlbertError

_SCORES = ("precision", "recall", "f1")


class TokenClassification(Task):
    """Entities: spans of a text with a label."""

    name = "token-classification"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_tagged_texts

        data = read_tagged_texts(path)
        labels = data.labels if known is None else known["labels"]
        if not labels:
            raise AlbertError(f"No text of {path} has an entity.")
        if other := sorted(set(data.labels) - set(labels)):
            raise AlbertError(
                f"{path} has the labels {other}. Expected only {list(labels)}."
            )
        return Examples(data.x, data.spans, {"labels": labels})

    def summary(self, arguments):
        return f"{len(arguments['labels'])} labels: {shown(arguments['labels'])}."

    def scores(self, model, examples, batch_size):
        values = self._scores_by_label(model, examples, batch_size)
        return {name: values[name] for name in _SCORES}

    def report(self, model, examples, batch_size):
        values = self._scores_by_label(model, examples, batch_size)
        table = Table("", *_SCORES, "count")
        for label, row in {**values["types"], "all": values}.items():
            cells = (f"{row[name]:.4f}" for name in _SCORES)
            table.add_row(label, *cells, str(row["count"]))
        return Report(values, [table])

    def cells(self, answer):
        return [" ".join(f"{x['word']}/{x['entity_group']}" for x in answer)]

    def mistakes(self, model, examples, batch_size):
        from albert_tf.evaluation import worst_entity_mistakes

        predicted = model.predict_spans(examples.x, batch_size, verbose=0)

        def named(text, spans):
            return " ".join(
                f"{text[start:end]}/{label}@{start}"
                + "".join(f" ({score:.4f})" for score in scores)
                for start, end, label, *scores in spans
            )

        rows = []
        for found in worst_entity_mistakes(examples.y, predicted):
            text = examples.x[found["index"]]
            spans = {name: named(text, found[name]) for name in ("missed", "wrong")}
            row = {"example": found["index"] + 1, **spans, "loss": found["loss"]}
            rows.append({**row, "text": text})
        return rows

    def _scores_by_label(self, model, examples, batch_size):
        from albert_tf.evaluation import entity_scores

        predicted = model.predict(examples.x, batch_size=batch_size, verbose=0)
        return entity_scores(examples.y, predicted)
