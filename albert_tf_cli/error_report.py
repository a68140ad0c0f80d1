"""`albert-tf evaluate --report`: a page of scores and mistakes."""

import pathlib

from albert_tf_cli.explain import refusal
from albert_tf_lite.errors import AlbertError

# Number of mistakes with colours. Each takes as long as 100 predictions.
EXPLAINED = 20

_NOTES = {
    "mistakes": (
        "The worst mistakes",
        "Sorted by loss. Examples are counted from 1, without the header of the file.",
    ),
    "suspicious": (
        "Training examples whose label looks wrong",
        "A cross-validated logistic regression on the TF-IDF of characters (for pairs, "
        "on the features of the model) predicts another label. Sorted by the "
        "probability of the given label.",
    ),
}
_COLOURS = (
    f" In the first {EXPLAINED}, blue supports the prediction and orange opposes it "
    "(integrated gradients)."
)


def check_report(row, directory, train):
    """Raise before anything is computed if the report cannot be written."""
    from albert_tf.evaluation import check_report_directory

    options = {"mistakes": ("--report", directory), "suspicious": ("--train", train)}
    for field, (option, given) in options.items():
        if given and getattr(row, field) is None:
            raise AlbertError(refusal(option, field, row))
    check_report_directory(directory)


def write_report(row, model, examples, report, batch_size, directory, title, train):
    """Write the report of a task. Returns a message for the user."""
    from albert_tf.evaluation import write_error_report

    rows = row.mistakes(model, examples, batch_size)
    lists = [_list("mistakes", rows, _attributions(row, model, rows))]
    if train:
        lists.append(_list("suspicious", row.suspicious(model, train, batch_size)))
    labels = getattr(model, "class_names", None)
    write_error_report(directory, title, report.values, lists, labels)
    counts = ", ".join(f"{len(part.rows)} {part.name}" for part in lists)
    return f"Wrote {pathlib.Path(directory) / 'report.html'} ({counts})."


def _list(name, rows, attributions=()):
    from albert_tf.evaluation import ErrorList

    title, note = _NOTES[name]
    note += _COLOURS if attributions else ""
    return ErrorList(name, title, note, rows, attributions)


def _attributions(row, model, rows):
    """The attributions of the first texts to the predicted class, by column."""
    if row.explain is None or not rows:
        return ()
    explain = row.explain(model)
    given = []
    for found in rows[:EXPLAINED]:
        columns = [name for name in ("text", "text_b") if name in found]
        texts = tuple(found[name] for name in columns)
        values = explain(texts, found.get("predicted")).values
        given.append(dict(zip(columns, values, strict=True)))
    return given
