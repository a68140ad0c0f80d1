"""`albert-tf evaluate --report`: what a model gets wrong, as a page."""

import pathlib

from albert_tf_cli.explain import refusal
from albert_tf_lite.errors import AlbertError

# So many of the worst mistakes have colours: each costs as much as 100 predictions.
EXPLAINED = 20

_NOTES = {
    "mistakes": (
        "The worst mistakes",
        "By falling loss. Examples are counted from 1 in the file, without its header.",
    ),
    "suspicious": (
        "Training examples whose label looks wrong",
        "By falling loss of a logistic regression, cross-validated, on the TF-IDF of "
        "characters (of pairs on the model's features); chosen by confident learning.",
    ),
    "to_label": (
        "Texts to label next",
        "The most uncertain that are unlike one another, by falling entropy (nats).",
    ),
}
_COLOURS = (
    f" In the first {EXPLAINED}, blue speaks for what was predicted and orange against "
    "it (integrated gradients)."
)


def check_report(row, directory, train, unlabelled):
    """Refuse what cannot be reported before anything is computed."""
    from albert_tf.evaluation import check_report_directory

    options = {
        "mistakes": ("--report", directory),
        "suspicious": ("--train", train),
        "to_label": ("--unlabelled", unlabelled),
    }
    for field, (option, given) in options.items():
        if given and getattr(row, field) is None:
            raise AlbertError(refusal(option, field, row))
    check_report_directory(directory)


def read_unlabelled(row, model, path):
    """The lines of a file, as x for the model."""
    from albert_tf.data.encodings import read_lines

    lines = [line for line in read_lines(path) if line.strip()]
    if not lines:
        raise AlbertError(f"{path} has no texts. Expected one a line.")
    return row.inputs(model, lines)


def write_report(
    row, model, examples, report, batch_size, directory, title, train, unlabelled
):
    """Write the report of a task; gives what to tell the user."""
    from albert_tf.evaluation import write_error_report

    rows = row.mistakes(model, examples, batch_size)
    lists = [_list("mistakes", rows, _attributions(row, model, rows))]
    if train:
        lists.append(_list("suspicious", row.suspicious(model, train, batch_size)))
    if unlabelled:
        lists.append(_list("to_label", row.to_label(model, unlabelled, batch_size)))
    labels = getattr(model, "class_names", None)
    named = write_error_report(directory, title, report.values, lists, labels)
    counts = ", ".join(f"{len(part.rows)} {part.name}" for part in lists)
    told = f"Wrote {pathlib.Path(directory) / 'report.html'} ({counts})."
    if not named:
        told += (
            " No installed font has all characters of the classes: the picture has "
            "numbers, and the page says what they stand for. With a font such as Noto "
            "Sans CJK it has the names."
        )
    return told


def _list(name, rows, attributions=()):
    from albert_tf.evaluation import ErrorList

    title, note = _NOTES[name]
    note += _COLOURS if attributions else ""
    return ErrorList(name, title, note, rows, attributions)


def _attributions(row, model, rows):
    """What each character of the first texts does for the predicted class."""
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
