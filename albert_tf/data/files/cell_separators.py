"""Find what separates the cells of a text file, and whether they are quoted."""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple

from albert_tf.data.files.headers import HEADER_ROWS, header_index

# Separators of .csv files, the most usual first.
_SEPARATORS = ",;\t|"


class CellStyle(NamedTuple):
    """Separator of cells, and the constant of the csv module for their quotes."""

    separator: str
    quoting: Literal[0, 3]


def detect_style(
    path: str | os.PathLike, kind: str, head: Sequence[str], is_whole: bool
) -> CellStyle:
    """Return the style of the cells of a file, and warn if it is not the usual one.

    Args:
        path: path of the file, for messages.
        kind: string, the suffix of its format. A ".csv" file has commas and quotes, all
            others have tabs, and quotes if all cells with tabs or line ends need them.
        head: list of strings, its first lines with their ends.
        is_whole: bool. Whether these are all lines.
    """
    if kind == ".csv":
        return CellStyle(_csv_separator(path, head, is_whole), csv.QUOTE_MINIMAL)
    if not _is_quoted("".join(head), is_whole):
        return CellStyle("\t", csv.QUOTE_NONE)
    warnings.warn(f"{path} has quoted cells. Read as such.", stacklevel=5)
    return CellStyle("\t", csv.QUOTE_MINIMAL)


# === Separators of .csv files ===


def _csv_separator(path: str | os.PathLike, head: Sequence[str], is_whole: bool) -> str:
    """Return the first separator that divides all rows alike, by default a comma."""
    widths = {x: _widths(x, head, is_whole) for x in _SEPARATORS}
    dividing = [x for x in _SEPARATORS if widths[x] and widths[x][0] > 1]
    fitting = [x for x in dividing if len(set(widths[x])) == 1]
    # Without any, the first row that differs from the header is refused later.
    separator, *others = fitting or dividing[:1] or [","]
    if others:
        message = f"separated by {separator!r}, and not by {others[0]!r}"
        warnings.warn(f"{path} is {message}. Read as such.", stacklevel=6)
    elif separator != ",":
        message = f"separated by {separator!r}, not by commas"
        warnings.warn(f"{path} is {message}. Read as such.", stacklevel=6)
    return separator


def _widths(separator: str, head: Sequence[str], is_whole: bool) -> list[int]:
    """Return the number of cells of each row from the header on; empty if not CSV."""
    table = []
    try:
        for cells in csv.reader(head, strict=True, delimiter=separator):
            # A blank line has none.
            if cells:
                table.append(cells)
    except csv.Error as error:
        if is_whole or "unexpected end" not in str(error):
            return []
    first = header_index(table[:HEADER_ROWS]) or 0
    return [len(cells) for cells in table[first:]]


# === Quotes of other files ===


def _is_quoted(text: str, is_whole: bool) -> bool:
    """Return whether quotes belong to the form of a table and not to its texts.

    Then they surround cells that have tabs, line ends or doubled quotes in them, or all
    cells but numbers.
    """
    text = re.sub("\r\n?", "\n", text)
    # The first lines may end within a cell.
    ends = ("",) if is_whole else ("", '"')
    if '"' not in text or not any(_QUOTED.fullmatch(text + end) for end in ends):
        return False
    cells = _QUOTED_CELL.findall(text)
    are_needed = any(re.search('[\t\n]|""', cell) for cell in cells)
    return are_needed or any(_ALL_QUOTED.fullmatch(text + end) for end in ends)


def _table_pattern(plain: str) -> re.Pattern[str]:
    """Return the form of a table whose cells are quoted or match `plain`."""
    cell = f'(?:"(?:[^"]|"")*"|{plain})'
    return re.compile(f"{cell}(?:[\t\n]{cell})*")


_QUOTED = _table_pattern(r'[^"\t\n]*')
_ALL_QUOTED = _table_pattern(r"[-+.\dE]*")
_QUOTED_CELL = re.compile(r'(?:^|(?<=[\t\n]))"((?:[^"]|"")*)"(?=[\t\n]|$)')
