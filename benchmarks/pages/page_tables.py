"""The tables of pages, from the results of the benchmarks: `make figures`.

`tables.toml` describes most of them; the others are functions.
"""

import functools
import string

from benchmarks.pages.accuracy_tables import accuracy, accuracy_in_short
from benchmarks.pages.all_results import all_results
from benchmarks.pages.described import ROWS, TABLES, in_language
from benchmarks.pages.markdown import table

# Formats of values, besides those of Python.
FORMATS = {
    # At least two digits.
    "digits": lambda x: f"{x:.0f}" if x >= 100 else f"{x:.1f}",
    "rate": lambda x: f"{x:.0f}" if x >= 20 else f"{x:.1f}",
    # Of megabytes.
    "gigabytes": lambda x: f"{x / 1e3:.1f} GB",
    # 2e-5
    "power": lambda x: f"{x:.0e}".replace("e-0", "e-"),
    # 1,000
    "thousands": lambda x: f"{int(x):,}",
    # albert_tiny_zh: tiny
    "size": lambda x: x.removeprefix("albert_").removesuffix("_zh"),
}
FUNCTIONS = {
    "accuracy": accuracy,
    "accuracy_in_short": accuracy_in_short,
    "results": all_results,
}


class Formatter(string.Formatter):
    """`str.format` with `FORMATS`, which formats `None` as nothing."""

    def format_field(self, value, format_spec):
        if value is None:
            return ""
        if format_spec in FORMATS:
            return FORMATS[format_spec](value)
        return super().format_field(value, format_spec)


def page_tables(results, computed):
    """Return the tables by name: functions of whether a page is in Chinese."""
    tables = {
        name: functools.partial(function, results)
        for name, function in FUNCTIONS.items()
    }
    values = {**results, **computed}
    for name, description in TABLES.items():
        tables[name] = functools.partial(described_table, description, values)
    return tables


def described_table(description, values, chinese):
    """Return a table of `tables.toml`."""

    def text(template, row):
        template = in_language(template, chinese)
        return Formatter().vformat(template, (), {**values, **row})

    lines = []
    for row, row_values in rows_of(description, values):
        title = text(row.get("title", "{name}"), row_values)
        if chinese:
            for english, word in description.get("words", {}).items():
                title = title.replace(english, word)
        cells = row.get("cells") or description["columns"]
        lines.append([title, *(cell_text(x, row_values, text) for x in cells)])
    titles = [text(column["title"], {}) for column in description["columns"]]
    return table(titles, lines, text(description.get("first", ""), {}))


def cell_text(cell, row, text):
    """Return the text of a cell, or `missing` where the row lacks its value."""
    try:
        return text(cell["cell"], row)
    except KeyError:
        if "missing" not in cell:
            raise
        return cell["missing"]


def rows_of(description, values):
    """Yield the description of each row, and the values that only it has."""
    rows = description["rows"]
    for row in ROWS[rows] if isinstance(rows, str) else rows:
        if "each" not in row:
            path = [*description.get("of", []), *row.get("of", [])]
            yield row, {"row": value_at(values, path)}
            continue
        start, end = row.get("start", ""), row.get("end", "")
        for name, value in value_at(values, row["each"]).items():
            if name.startswith(start) and name.endswith(end):
                name = name.removeprefix(start).removesuffix(end)
                yield row, {"name": name, "row": value}


def value_at(values, path):
    """Return the value at a path of keys."""
    for key in path:
        values = values[key]
    return values
