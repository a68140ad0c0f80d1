"""Error reports: a self-contained HTML page and its values as JSON."""

from __future__ import annotations

import dataclasses
import html
import itertools
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.files import complete_directory, write_json, write_text
from albert_tf_lite.errors import AlbertError

PAGE, VALUES = "report.html", "report.json"
# A page with this tag may be replaced by a newer report.
MARK = '<meta name="generator" content="albert-tf error report">'

# Blue supports the prediction and orange opposes it. People who cannot tell red from
# green can tell these apart.
SUPPORTS, OPPOSES = (66, 133, 244), (245, 150, 40)
# Characters below this share of the strongest one have no colour.
LEAST_SHARE = 0.05


@dataclasses.dataclass(frozen=True)
class ErrorList:
    """Examples to look at, one per row.

    Attributes:
        name: string, the key in `report.json`, for example "mistakes".
        title, note: strings, shown above the table.
        rows: list of dicts with the same keys, strings and numbers.
        attributions: optional list for the first rows, dicts by column: one float for
            each character of the text, which colours it.
    """

    name: str
    title: str
    note: str
    rows: Sequence[Mapping[str, Any]]
    attributions: Sequence[Mapping[str, Any]] = ()


def write_error_report(
    directory: str | os.PathLike,
    title: str,
    scores: Mapping[str, Any],
    lists: Iterable[ErrorList] = (),
    labels: Sequence[str] | None = None,
) -> None:
    """Write `report.html`, which needs no other file, and `report.json`.

    Args:
        directory: string. An older report in it is replaced.
        title: string, for example the names of the model and the file.
        scores: dict, for example of `classification_report`. Its `confusion_matrix` is
            shown as a table.
        lists: `ErrorList`s.
        labels: list of strings, the names of the classes of the confusion matrix.

    Raises:
        FileExistsError: if the directory contains anything but a report.

    Example:
    ```python
    rows = albert_tf.evaluation.worst_mistakes(probabilities, truth)
    rows = [{"text": texts[row["index"]], **row} for row in rows]
    write_error_report(
        "report",
        "Reviews",
        albert_tf.evaluation.classification_report(truth, predicted, labels),
        [ErrorList("mistakes", "Worst mistakes", "The most certain ones.", rows)],
        labels,
    )
    ```
    """
    check_report_directory(directory)
    lists = list(lists)
    values = {"title": title, "scores": scores}
    values["lists"] = {part.name: list(part.rows) for part in lists}
    page = _page(title, scores, lists, labels)
    with complete_directory(directory) as folder:
        write_text(folder / PAGE, page)
        write_json(folder / VALUES, values)


def check_report_directory(directory: str | os.PathLike) -> None:
    """Raise `FileExistsError` if a directory contains anything but a report."""
    path = pathlib.Path(directory)
    if not path.exists():
        return
    if not path.is_dir():
        raise FileExistsError(f"{path} is a file. Choose another directory.")
    others = {entry.name for entry in path.iterdir()}
    if (path / PAGE).is_file() and MARK in (path / PAGE).read_text("utf-8", "replace"):
        others -= {PAGE, VALUES}
    if others:
        raise FileExistsError(
            f"{path} contains files that are not part of a report: "
            f"{', '.join(sorted(others)[:3])}. Choose another directory."
        )


# === The page ===

_STYLE = """
body { font-family: "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #ccc; padding: 0.25em 0.6em; text-align: left;
  vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }
th { background: #f3f3f3; }
td.number { text-align: right; white-space: nowrap; }
"""


def _page(title, scores, lists, labels):
    parts = [f"<h1>{html.escape(title)}</h1>", "<h2>Scores</h2>"]
    parts += map(_table, _score_tables(scores))
    if "confusion_matrix" in scores:
        parts.append("<h2>Confusion matrix</h2>")
        parts.append("<p>A row is a true class, a column a predicted class.</p>")
        parts.append(_confusion_table(scores["confusion_matrix"], labels))
    for part in lists:
        parts.append(f"<h2>{html.escape(part.title)}</h2>")
        parts.append(f"<p>{html.escape(part.note)}</p>")
        parts.append(_table(part.rows, part.attributions) if part.rows else "none")
    head = f'<meta charset="utf-8">{MARK}<title>{html.escape(title)}</title>'
    body = "\n".join(parts)
    return (
        f"<!DOCTYPE html>\n<html><head>{head}<style>{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _score_tables(scores):
    """The scores as lists of rows: single numbers, rows by class, lists of rows."""
    numbers = [
        {"score": name, "value": value}
        for name, value in scores.items()
        if isinstance(value, int | float)
    ]
    tables = [numbers, _named_rows(scores)]
    for value in scores.values():
        if isinstance(value, Mapping):
            tables.append(_named_rows(value))
        elif isinstance(value, list):
            tables.append([row for row in value if isinstance(row, Mapping)])
    return [table for table in tables if table]


def _named_rows(values):
    return [
        {"": name, **row}
        for name, row in values.items()
        if isinstance(row, Mapping)
        and all(isinstance(x, int | float) for x in row.values())
    ]


def _confusion_table(matrix, labels):
    matrix = np.asarray(matrix)
    if matrix.shape != (len(labels), len(labels)):
        raise AlbertError(
            "The confusion matrix should have a row and a column for each of the "
            f"{len(labels)} labels. Received shape: {matrix.shape}"
        )
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    lines = [_header(["", *labels])]
    for label, counts, row in zip(labels, matrix, shares, strict=True):
        cells = (
            f'<td class="number" style="background:{_colour(share)}">{count}</td>'
            for count, share in zip(counts, row, strict=True)
        )
        lines.append(f"<tr><th>{html.escape(label)}</th>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _table(rows, attributions=()):
    lines = [_header(rows[0])]
    for row, colours in itertools.zip_longest(rows, attributions, fillvalue={}):
        cells = (_cell(row.get(name, ""), colours.get(name)) for name in rows[0])
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _header(names):
    cells = "".join(f"<th>{html.escape(str(name))}</th>" for name in names)
    return f"<tr>{cells}</tr>"


def _cell(value, colours):
    if colours is not None:
        return f"<td>{_coloured(value, colours)}</td>"
    if isinstance(value, int | float):
        # Counts of scikit-learn are floats, too.
        shown = f"{value:,.0f}" if float(value).is_integer() else f"{value:.4f}"
        return f'<td class="number">{shown}</td>'
    return f"<td>{html.escape(str(value))}</td>"


# === Attributions ===


def coloured_runs(
    text: str, values: Any, strongest: float | None = None
) -> list[tuple[str, str | None]]:
    """Split a text into pieces of one colour each.

    Args:
        text: string.
        values: float array [characters], positive where a character supports the
            prediction.
        strongest: optional float, the absolute value with the full colour. By default
            the largest of `values`.

    Returns:
        A list of `(piece, colour)`, the colour such as `"#4285f4"`, or `None` for
        values near 0.

    Raises:
        AlbertError: if there is not one value per character.
    """
    values = np.asarray(values, "float64")
    if len(values) != len(text):
        raise AlbertError(
            f"`values` should have one number for each of the {len(text)} characters. "
            f"Received: {len(values)}"
        )
    strongest = strongest or np.abs(values).max(initial=0.0) or 1.0
    shares = np.clip(values / strongest, -1, 1)
    colours = [_colour(x) if abs(x) >= LEAST_SHARE else None for x in shares]
    pairs = zip(text, colours, strict=True)
    return [
        ("".join(character for character, _ in run), colour)
        for colour, run in itertools.groupby(pairs, lambda pair: pair[1])
    ]


def _colour(share):
    """The colour of a share from -1 to 1, white at 0."""
    full = SUPPORTS if share > 0 else OPPOSES
    return "#" + bytes(round(255 + (c - 255) * abs(share)) for c in full).hex()


def _coloured(text, values):
    parts = []
    for piece, colour in coloured_runs(text, values):
        piece = html.escape(piece)
        if colour is not None:
            piece = f'<span style="background:{colour};color:#000">{piece}</span>'
        parts.append(piece)
    return "".join(parts)
