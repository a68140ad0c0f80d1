"""Texts or pairs of texts, each of one class."""

import rich.table

from albert_tf_cli.common import shown
from albert_tf_cli.task_table.row import Examples, Report, Row


def read(path, columns, known=None):
    from albert_tf.data import class_names, read_labelled_texts

    pairs = None if known is None else known["pairs"]
    data = read_labelled_texts(path, *columns, pairs=pairs)
    if known is None:
        labels = class_names(data.labels)
        if len(labels) < 2:
            raise ValueError(
                f"All texts of {path} have the label {labels[0]!r}. Expected two "
                "classes at least; is it the right --label-column?"
            )
    else:
        labels = labels_of(known)
    return Examples(
        data.x,
        data.class_ids(labels),
        count=len(data.labels),
        arguments={
            "num_classes": len(labels),
            "labels": labels,
            "pairs": data.pairs,
        },
        unit="pairs" if data.pairs else "texts",
    )


def labels_of(known):
    """The names of the classes of a model, their numbers if they have none."""
    return known["labels"] or list(map(str, range(known["num_classes"])))


def summary(arguments):
    return f"{arguments['num_classes']} classes: {shown(arguments['labels'])}."


def report(model, examples, batch_size):
    from albert_tf.evaluation import classification_report, level_scores

    outputs = model.predict(examples.x, batch_size=batch_size, verbose=0)
    labels = model.class_names
    given = (examples.y, outputs.argmax(-1), labels)
    values = classification_report(*given)
    table = rich.table.Table("truth \\ predicted", *labels)
    for label, row in zip(labels, values["confusion_matrix"], strict=True):
        table.add_row(label, *map(str, row))
    lines = [classification_report(*given, as_text=True), table]
    levels = level_scores(*given)
    if levels:
        values["levels"] = levels
        lines += [
            f"level {level['level']}: accuracy {level['accuracy']:.4f}, "
            f"macro F1 {level['macro_f1']:.4f}"
            for level in levels
        ]
    return Report(values, lines)


def cells(answer):
    return [answer["label"], f"{answer['score']:.4f}"]


ROW = Row(
    name="text-classification",
    maximise="accuracy",
    read=read,
    summary=summary,
    report=report,
    cells=cells,
)
