"""The page of `albert-tf evaluate --report`, and colours of attributions."""

import html
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from albert_tf.files import complete_directory, write_json, write_text

# Blue supports the prediction and orange opposes it. People who cannot tell red from
# green can tell these apart.
SUPPORTS, OPPOSES = (66, 133, 244), (245, 150, 40)
# Characters below this share of the strongest one have no colour.
LEAST_SHARE = 0.05

_STYLE = """
body { font-family: "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #ccc; padding: 0.25em 0.6em; text-align: left;
  vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }
th { background: #f3f3f3; }
"""


class ErrorList(NamedTuple):
    """Examples to look at: a key in `report.json`, a heading and a row each.

    `attributions`, of the first rows, are dicts by column: one float for each character
    of the text, which colours it.
    """

    name: str
    title: str
    note: str
    rows: list[dict]
    attributions: list[dict] = []


def write_report(
    directory: str, title: str, scores: dict[str, Any], lists: list[ErrorList]
) -> None:
    """Write `report.html`, which needs no other file, and `report.json`.

    An older report in the directory is replaced; other files stay. `scores` are those
    of `evaluate`.
    """
    groups = itertools.groupby(score_rows(scores), list)
    sections = [("Scores", "", "".join(_table(list(rows)) for _, rows in groups))]
    if matrix := confusion_rows(scores):
        note = "A row is a true class, a column a predicted class."
        sections.append(("Confusion matrix", note, _table(matrix)))
    sections += [(x.title, x.note, _table(x.rows, x.attributions)) for x in lists]
    heading = html.escape(title)
    body = "\n".join(
        f"<h2>{html.escape(name)}</h2>\n<p>{html.escape(note)}</p>\n{table}"
        for name, note, table in sections
    )
    page = (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{heading}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>{heading}</h1>\n{body}\n"
        "</body></html>"
    )
    rows = {part.name: part.rows for part in lists}
    fields = {"title": title, "scores": scores, "lists": rows}
    with complete_directory(directory) as folder:
        write_text(folder / "report.html", page)
        write_json(folder / "report.json", fields)


def score_rows(scores: Mapping[str, Any], name: str = "") -> Iterator[dict[str, Any]]:
    """Yield the single values of a dict, then those of the dicts in it, as rows."""
    values = {k: v for k, v in scores.items() if not isinstance(v, dict | list)}
    if values:
        yield {"": name, **values}
    for key, value in scores.items():
        if isinstance(value, dict):
            yield from score_rows(value, key)


def confusion_rows(scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the confusion matrix, if the scores have one."""
    matrix = scores.get("confusion_matrix", [])
    # The scores of the classes come first.
    labels = list(scores)[: len(matrix)]
    return [
        {"truth \\ predicted": label, **dict(zip(labels, counts, strict=True))}
        for label, counts in zip(labels, matrix, strict=True)
    ]


def shown_number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _table(rows, attributions=()):
    if not rows:
        return "none"
    lines = ["".join(f"<th>{html.escape(name)}</th>" for name in rows[0])]
    for row, colours in itertools.zip_longest(rows, attributions, fillvalue={}):
        cells = (_cell(row.get(name, ""), colours.get(name)) for name in rows[0])
        lines.append("".join(f"<td>{cell}</td>" for cell in cells))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value, attributions):
    if attributions is None:
        return html.escape(shown_number(value))
    return "".join(
        f'<span style="background:{colour or "#ffffff"};color:#000">'
        f"{html.escape(piece)}</span>"
        for piece, colour in coloured_runs(value, attributions)
    )


def coloured_runs(
    text: str, values: Any, strongest: float | None = None
) -> list[tuple[str, str | None]]:
    """Split a text into pieces of one colour, such as `"#4285f4"`, or `None`.

    `values` [characters] are positive where a character supports the prediction. The
    absolute value `strongest`, by default the largest, has the full colour.
    """
    values = np.asarray(values, "float64")
    strongest = strongest or np.abs(values).max(initial=0.0) or 1.0
    shares = np.clip(values / strongest, -1, 1)
    colours = [_colour(x) if abs(x) >= LEAST_SHARE else None for x in shares]
    runs = itertools.groupby(zip(text, colours, strict=True), lambda pair: pair[1])
    return [("".join(x for x, _ in pairs), colour) for colour, pairs in runs]


def _colour(share):
    """Return the colour of a share from -1 to 1, white at 0."""
    full = SUPPORTS if share > 0 else OPPOSES
    return "#" + bytes(round(255 + (c - 255) * abs(share)) for c in full).hex()
