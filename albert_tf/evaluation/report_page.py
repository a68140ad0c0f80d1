"""The HTML page of an error report."""

from __future__ import annotations

import base64
import dataclasses
import html
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from albert_tf.evaluation.attribution_colours import attribution_html


@dataclasses.dataclass(frozen=True)
class ErrorList:
    """Examples to look at, a row each.

    Attributes:
        name: string, of its file and in `report.json`, such as "mistakes".
        title, note: strings, for people.
        rows: list of dicts with the same keys, strings and numbers.
        attributions: optional, for the first rows dicts by column: a float for each
            character of the text there, which colours it.
    """

    name: str
    title: str
    note: str
    rows: Sequence[Mapping[str, Any]]
    attributions: Sequence[Mapping[str, Any]] = ()


_STYLE = """
body { font-family: "Noto Sans CJK SC", "Noto Sans SC", "PingFang SC",
  "Microsoft YaHei", "WenQuanYi Micro Hei", sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #ccc; padding: 0.25em 0.6em; text-align: left;
  vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }
th { background: #f3f3f3; }
td.number { text-align: right; white-space: nowrap; }
img { max-width: 100%; }
"""


def report_page(
    title: str,
    scores: Mapping[str, Any],
    lists: Iterable[ErrorList],
    picture: str | os.PathLike | None = None,
    legend: Sequence[str] | None = None,
) -> str:
    """A page of HTML that needs no other file; all texts in it are escaped.

    Args:
        title: string.
        scores: dict, as a report of `albert_tf.evaluation` gives them.
        lists: what to show below them.
        picture: optional string, the PNG of the confusion matrix.
        legend: optional list of strings, the names of classes that have numbers in the
            picture.
    """
    parts = [f"<h1>{html.escape(title)}</h1>", "<h2>Scores</h2>"]
    parts += [_table(rows) for rows in score_tables(scores)]
    if picture is not None:
        data = base64.b64encode(pathlib.Path(picture).read_bytes()).decode()
        parts.append("<h2>Confusion matrix</h2>")
        parts.append(f'<img alt="Confusion matrix" src="data:image/png;base64,{data}">')
    if legend is not None:
        items = "".join(f"<li>{html.escape(name)}</li>" for name in legend)
        parts.append(
            "<p>No font installed where this was drawn has all characters of the "
            f'classes. The numbers stand for:</p><ol start="0">{items}</ol>'
        )
    for part in lists:
        parts.append(f"<h2>{html.escape(part.title)}</h2>")
        parts.append(f"<p>{html.escape(part.note)}</p>")
        parts.append(_table(part.rows, part.attributions) if part.rows else "none")
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
    body = "\n".join(parts)
    return (
        f"<!DOCTYPE html>\n<html><head>{head}<style>{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def score_tables(scores: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """The scores as tables, lists of rows: single numbers, by class, by level."""
    numbers = {name: x for name, x in scores.items() if isinstance(x, (int, float))}
    rows = [{"score": name, "value": value} for name, value in numbers.items()]
    tables = [rows, _by_name(scores)]
    for value in scores.values():
        if isinstance(value, Mapping) and not _is_row(value):
            tables.append(_by_name(value))
        elif isinstance(value, list) and value and all(map(_is_row, value)):
            tables.append(value)
    return [table for table in tables if table]


def _is_row(value):
    """Whether it is a dict of numbers."""
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(x, (int, float)) for x in value.values())


def _by_name(values):
    return [{"": name, **row} for name, row in values.items() if _is_row(row)]


def _table(rows, attributions=()):
    header = "".join(f"<th>{html.escape(str(name))}</th>" for name in rows[0])
    lines = [f"<tr>{header}</tr>"]
    for i, row in enumerate(rows):
        colours = attributions[i] if i < len(attributions) else {}
        cells = "".join(_cell(row.get(x, ""), colours.get(x)) for x in rows[0])
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _cell(value, colours):
    if colours is not None:
        return f"<td>{attribution_html(value, colours)}</td>"
    if isinstance(value, (int, float)):
        return f'<td class="number">{_shown_number(value)}</td>'
    return f"<td>{html.escape(str(value))}</td>"


def _shown_number(value):
    """Whole ones as such, for scikit-learn's counts are floats."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4f}"
