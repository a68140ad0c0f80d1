"""Texts or pairs of texts, each of one class."""

import rich.table

from albert_tf_cli.common import shown
from albert_tf_cli.task_table.row import Examples, Report, Row, columns_of
from albert_tf_lite.errors import AlbertError


def read(path, columns, known=None):
    from albert_tf.data import class_names, read_labelled_texts

    pairs = None if known is None else known["pairs"]
    data = read_labelled_texts(path, *columns, pairs=pairs)
    if known is None:
        labels = class_names(data.labels)
        if len(labels) < 2 and "" not in data.labels:
            raise AlbertError(
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


# === The error report ===


def mistakes(model, examples, batch_size):
    from albert_tf.evaluation import worst_mistakes

    outputs = model.predict(examples.x, batch_size=batch_size, verbose=0)
    probabilities = model.answers(outputs)["probabilities"]
    return [
        {
            "example": found["index"] + 1,
            "label": model.class_names[found["label_id"]],
            "predicted": model.class_names[found["predicted_id"]],
            "probability": found["predicted_probability"],
            "of_label": found["label_probability"],
            **columns_of(examples.x, found["index"]),
        }
        for found in worst_mistakes(probabilities, examples.y)
    ]


def suspicious(model, examples, batch_size):
    from albert_tf.evaluation import character_features, suspicious_labels
    from albert_tf.models import text_features

    # The model may know the labels by heart; but that two texts belong together
    # their characters do not say.
    if model.pairs:
        features, _ = text_features(model, examples.x, batch_size)
    else:
        features = character_features(examples.x)
    return [
        {
            "example": found["index"] + 1,
            "label": model.class_names[found["label_id"]],
            "suggested": model.class_names[found["suggested_id"]],
            "probability": found["suggested_probability"],
            "of_label": found["label_probability"],
            **columns_of(examples.x, found["index"]),
        }
        for found in suspicious_labels(features, examples.y)
    ]


def to_label(model, x, batch_size):
    from albert_tf.evaluation import next_to_label
    from albert_tf.models import text_features

    features, probabilities = text_features(model, x, batch_size)
    return [
        {
            "example": found["index"] + 1,
            "predicted": model.class_names[found["predicted_id"]],
            "probability": found["predicted_probability"],
            "entropy": found["entropy"],
            **columns_of(x, found["index"]),
        }
        for found in next_to_label(probabilities, features)
    ]


def explain(model):
    from albert_tf.models import IntegratedGradients

    return IntegratedGradients(model)


ROW = Row(
    name="text-classification",
    maximise="accuracy",
    read=read,
    summary=summary,
    report=report,
    cells=cells,
    mistakes=mistakes,
    suspicious=suspicious,
    to_label=to_label,
    explain=explain,
)
