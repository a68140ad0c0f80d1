"""Texts with entities: files of tagged columns, JSON of annotation tools."""

from albert_tf_cli.task_table.row import Examples, Report, Row
from albert_tf_lite.errors import AlbertError


def read(path, columns, known=None):
    from albert_tf.data import read_tagged_texts

    data = read_tagged_texts(path)
    labels = data.labels if known is None else known["labels"]
    if not labels:
        raise AlbertError(f"No text of {path} has an entity.")
    other = sorted(set(data.labels) - set(labels))
    if other:
        raise AlbertError(f"{path} has the labels {other}; expected {list(labels)}.")
    return Examples(data.x, data.spans, count=len(data.x), arguments={"labels": labels})


def summary(arguments):
    from albert_tf_cli.common import shown

    return f"{len(arguments['labels'])} labels: {shown(arguments['labels'])}."


def _report(model, examples, batch_size):
    from albert_tf.evaluation import entity_scores

    predicted = model.predict(examples.x, batch_size=batch_size, verbose=0)
    return entity_scores(examples.y, predicted)


def scores(model, examples, batch_size):
    values = _report(model, examples, batch_size)
    return {name: values[name] for name in ("precision", "recall", "f1")}


def report(model, examples, batch_size):
    from rich.table import Table

    values = _report(model, examples, batch_size)
    names = ("precision", "recall", "f1")
    table = Table("", *names, "count")
    for label, row in {**values["types"], "all": values}.items():
        table.add_row(label, *(f"{row[name]:.4f}" for name in names), str(row["count"]))
    return Report(values, [table])


def cells(answer):
    return [" ".join(f"{x['word']}/{x['entity_group']}" for x in answer)]


def mistakes(model, examples, batch_size):
    from albert_tf.evaluation import worst_entity_mistakes

    predicted = model.predict(examples.x, batch_size=batch_size, scores=True, verbose=0)

    def named(text, spans):
        return " ".join(
            f"{text[start:end]}/{label}@{start}"
            + "".join(f" ({score:.4f})" for score in scores)
            for start, end, label, *scores in spans
        )

    return [
        {
            "example": found["index"] + 1,
            "missed": named(examples.x[found["index"]], found["missed"]),
            "wrong": named(examples.x[found["index"]], found["wrong"]),
            "loss": found["loss"],
            "text": examples.x[found["index"]],
        }
        for found in worst_entity_mistakes(examples.y, predicted)
    ]


ROW = Row(
    name="token-classification",
    maximise="f1",
    read=read,
    summary=summary,
    report=report,
    cells=cells,
    scores=scores,
    inputs=lambda model, lines: lines,
    mistakes=mistakes,
)
