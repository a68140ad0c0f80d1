"""What a model gets wrong, as a directory of files for people and programs."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from albert_tf.evaluation.confusion_picture import draw_confusion
from albert_tf.evaluation.report_page import ErrorList, report_page
from albert_tf.files import complete_directory, write_json, write_text

# By this a directory is known as a report.
KIND = "albert-tf error report"
PAGE, VALUES, PICTURE = "report.html", "report.json", "confusion.png"


def write_error_report(
    directory: str | os.PathLike,
    title: str,
    scores: Mapping[str, Any],
    lists: Iterable[ErrorList] = (),
    labels: Sequence[str] | None = None,
) -> bool:
    """Write a report: a page, its picture, its values, and a table of each list.

    `report.html` needs no other file. `report.json` has the scores and the lists,
    `confusion.png` the confusion matrix, and `NAME.tsv` a list: a header, then an
    example a line; tabs and line breaks of texts are written as spaces in it.

    Args:
        directory: string. It may hold an older report, which is replaced.
        title: string, such as the model and the file it was scored on.
        scores: dict, such as `classification_report` gives; its `confusion_matrix` is
            drawn.
        lists: the `ErrorList`s, such as of `worst_mistakes`.
        labels: list of strings, the names of the classes of the confusion matrix.

    Returns:
        Whether the classes have their names in the picture: `False` where no installed
        font has their characters, and the names stand below it instead.

    Raises:
        FileExistsError: if the directory holds anything but a report.
        ImportError: if Matplotlib is not installed.

    Example:
    ```python
    rows = albert_tf.evaluation.worst_mistakes(probabilities, truth)
    rows = [{"text": texts[row["index"]], **row} for row in rows]
    write_error_report(
        "report",
        "Reviews",
        albert_tf.evaluation.classification_report(truth, predicted, labels),
        [ErrorList("mistakes", "Worst mistakes", "By loss.", rows)],
        labels,
    )
    ```
    """
    older = check_report_directory(directory)
    lists = list(lists)
    with complete_directory(directory) as folder:
        picture, named = None, True
        if "confusion_matrix" in scores:
            picture = folder / PICTURE
            named = draw_confusion(scores["confusion_matrix"], labels, picture)
        legend = None if named else labels
        page = report_page(title, scores, lists, picture, legend)
        write_text(folder / PAGE, page)
        values = {"kind": KIND, "title": title, "scores": scores}
        values["lists"] = {part.name: list(part.rows) for part in lists}
        write_json(folder / VALUES, values)
        for part in lists:
            write_text(folder / f"{part.name}.tsv", _tsv(part.rows))
        written = {path.name for path in folder.iterdir()}
    for name in older - written:
        (pathlib.Path(directory) / name).unlink()
    return named


def check_report_directory(directory: str | os.PathLike) -> set[str]:
    """The files of the report that is in a directory; empty if there is none.

    Raises:
        FileExistsError: if the directory holds anything but a report, or is a file.
    """
    path = pathlib.Path(directory)
    if path.is_dir():
        found = {entry.name for entry in path.iterdir()}
        others = found - _files_of(path) if found else found
        if not others:
            return found
        reason = f"it holds {', '.join(sorted(others)[:3])}, which is no part of one"
    elif path.exists():
        reason = "it is a file"
    else:
        return set()
    raise FileExistsError(
        f"{path} is not a directory for a report: {reason}. Choose a new name."
    )


def _files_of(path):
    """The names of the files that the report in a directory consists of."""
    try:
        values = json.loads((path / VALUES).read_bytes())
    except (OSError, ValueError):
        return set()
    if not isinstance(values, dict) or values.get("kind") != KIND:
        return set()
    return {PAGE, VALUES, PICTURE, *(f"{name}.tsv" for name in values["lists"])}


def _tsv(rows):
    if not rows:
        return ""
    lines = [rows[0].keys(), *(row.values() for row in rows)]
    return "".join("\t".join(map(_tsv_cell, line)) + "\n" for line in lines)


def _tsv_cell(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    # These would end the cell or the line.
    return str(value).translate({ord(c): " " for c in "\t\n\r"})
