"""Texts or pairs of texts, each of any number of classes: labels "体育|娱乐"."""

from albert_tf_cli.task_table.row import Examples, Report, Row, columns_of
from albert_tf_cli.task_table.text_classification import explain, labels_of, summary
from albert_tf_lite.errors import AlbertError


def read(path, columns, known=None):
    from albert_tf.data import class_names, read_labelled_texts
    from albert_tf.preprocessing.examples import multi_hot

    pairs = None if known is None else known["pairs"]
    data = read_labelled_texts(path, *columns, pairs=pairs)
    given = data.label_lists()
    if known is None:
        labels = class_names(name for names in given for name in names)
    else:
        labels = labels_of(known)
    if not labels:
        raise AlbertError(
            f"No text of {path} has a label. Several labels of a text stand in one "
            'cell, "体育|娱乐"; is it the right --label-column?'
        )
    return Examples(
        data.x,
        multi_hot(data.x, given, len(labels), labels),
        count=len(given),
        arguments={"num_classes": len(labels), "labels": labels, "pairs": data.pairs},
        unit="pairs" if data.pairs else "texts",
    )


def tune(model, examples, batch_size):
    from albert_tf.models import tune_thresholds

    tune_thresholds(model, examples.x, examples.y, batch_size)


def _chosen(model, examples, batch_size):
    outputs = model.predict(examples.x, batch_size=batch_size, verbose=0)
    return model.answers(outputs)["chosen"].numpy()


def scores(model, examples, batch_size):
    from albert_tf.evaluation import multi_label_scores

    return multi_label_scores(examples.y, _chosen(model, examples, batch_size))


def report(model, examples, batch_size):
    from albert_tf.evaluation import multi_label_report, multi_label_scores

    given = (examples.y, _chosen(model, examples, batch_size))
    scores = multi_label_scores(*given)
    values = multi_label_report(*given, model.class_names)
    values.update(scores)
    table = multi_label_report(*given, model.class_names, as_text=True)
    return Report(values, [table, f"exact match {scores['exact_match']:.4f}"])


def cells(answer):
    names = "|".join(label["label"] for label in answer)
    return [names, "|".join(f"{label['score']:.4f}" for label in answer)]


def mistakes(model, examples, batch_size):
    from albert_tf.evaluation import worst_multi_label_mistakes

    outputs = model.predict(examples.x, batch_size=batch_size, verbose=0)
    given = model.answers(outputs)

    def named(probabilities):
        names = model.class_names
        return "|".join(f"{names[i]} {x:.4f}" for i, x in probabilities.items())

    return [
        {
            "example": found["index"] + 1,
            "missed": named(found["missed"]),
            "wrong": named(found["wrong"]),
            "loss": found["loss"],
            **columns_of(examples.x, found["index"]),
        }
        for found in worst_multi_label_mistakes(
            given["probabilities"], examples.y, given["chosen"]
        )
    ]


ROW = Row(
    name="multi-label",
    takes_top_k=True,
    read=read,
    summary=summary,
    report=report,
    cells=cells,
    scores=scores,
    tune=tune,
    mistakes=mistakes,
    explain=explain,
)
