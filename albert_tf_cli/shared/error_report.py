"""A page of scores and mistakes, which needs no other file."""

import html
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf.files import complete_directory, read_template, write_json, write_text
from albert_tf_cli.shared.colours import coloured_html
from albert_tf_cli.shared.reliability_plot import reliability_svg
from albert_tf_cli.shared.score_tables import (
    Row,
    confusion_rows,
    coverage_rows,
    format_cell,
    score_rows,
    worst_classes,
)

# The package with the folder of templates.
ROOM = "albert_tf_cli.shared"
# The most rows of the scores of classes.
MOST_ROWS = 200
# The most characters of a cell.
CELL_LENGTH = 2000
_NOTE = (
    "Sorted by loss. Examples are counted from 1, without the header of the file. Blue "
    "characters support the prediction, orange ones oppose it."
)

# The contributions of the characters of one example, by column.
Attributions = Mapping[str, Sequence[float]]


def write_report(
    directory: str,
    title: str,
    scores: dict[str, Any],
    mistakes: list[Row],
    attributions: Sequence[Attributions] = (),
) -> None:
    """Write `report.html`, which needs no other file, and `report.json`.

    An older report in the directory is replaced; other files stay. `attributions` of
    the first mistakes are dicts by column, with a float for each character.
    """
    sections = [
        _scores_section(scores),
        *_confusion_sections(scores),
        *_calibration_sections(scores),
        _section("The worst mistakes", _NOTE, _table(mistakes, attributions)),
    ]
    page = read_template(ROOM, "report.html").substitute(
        title=html.escape(title), sections="".join(sections)
    )
    fields = {"title": title, "scores": scores, "lists": {"mistakes": mistakes}}
    with complete_directory(directory) as folder:
        write_text(folder / "report.html", page)
        write_json(folder / "report.json", fields)


def _scores_section(scores):
    """Return the section of scores, a table for neighbours with the same columns."""
    tables, notes = [], []
    for _, group in itertools.groupby(score_rows(scores), list):
        shown, note = worst_classes(list(group), MOST_ROWS)
        tables.append(_table(shown))
        if note:
            notes.append(f"{note} report.json has all.")
    return _section("Scores", " ".join(notes), "".join(tables))


def _confusion_sections(scores):
    """Return the section of confused classes, if the scores have any."""
    if matrix := confusion_rows(scores):
        note = "A row is a true class, a column a predicted class."
        return [_section("Confusion matrix", note, _table(matrix))]
    if pairs := scores.get("confused_pairs"):
        return [_section("The most confused pairs of classes", "", _table(pairs))]
    return []


def _calibration_sections(scores):
    """Return the sections of the reliability of scores, if the scores have them."""
    sections = []
    if bins := scores.get("reliability"):
        note = (
            "The accuracy of the answers in each interval of scores. On the dashed "
            "line both are equal; where a bar ends below it, the scores are too high. "
            "The darker the bar, the more answers."
        )
        sections.append(_section("Reliability", note, reliability_svg(bins)))
    if rows := coverage_rows(scores):
        note = "The share of the texts that are answered with --abstain, and how well."
        sections.append(_section("Abstaining", note, _table(rows)))
    return sections


def _section(title: str, note: str, table: str) -> str:
    return read_template(ROOM, "report_section.html").substitute(
        title=html.escape(title), note=html.escape(note), table=table
    )


def _table(rows: Sequence[Row], attributions: Sequence[Attributions] = ()) -> str:
    if not rows:
        return "none"
    names = list(rows[0])
    header = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = [f"<tr>{header}</tr>"]
    for i, row in enumerate(rows):
        colours = attributions[i] if i < len(attributions) else {}
        cells = [_cell(row.get(name, ""), colours.get(name)) for name in names]
        line = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f"<tr>{line}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _cell(value, colours):
    """Return the start of a value as HTML, in colours if it has some."""
    text = format_cell(value)
    more = "…" if len(text) > CELL_LENGTH else ""
    text = text[:CELL_LENGTH]
    if colours is None:
        return html.escape(text) + more
    return coloured_html(text, colours[:CELL_LENGTH]) + more
