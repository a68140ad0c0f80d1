"""The rows of a sheet of an Excel workbook, as a person sees them."""

from __future__ import annotations

import datetime
import os
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError

_CHUNK = 2**20
_ROW = re.compile(rb"<(?:\w+:)?row\s([^>]*)")
_COLUMN = re.compile(rb"<(?:\w+:)?col\s([^>]*)")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s([^>]*)")
_ATTRIBUTE = re.compile(rb"(\w+)\s*=\s*[\"']([^\"']*)")
_RANGE = re.compile(r"([A-Z]+)([0-9]+):([A-Z]+)([0-9]+)")


class _Layout(NamedTuple):
    """Hidden and merged cells of a sheet; numbers count from 1.

    Attributes:
        hidden_rows: set of ints.
        hidden_columns: list of (first, last).
        merged: list of strings such as "A2:A5".
    """

    hidden_rows: set[int]
    hidden_columns: list[tuple[int, int]]
    merged: list[str]


def sheet_rows(
    path: str | os.PathLike, sheet: str | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the cells of each row with any, of the same width.

    Warns of other sheets, and of merged and hidden cells, which are read.

    Args:
        path: path of a workbook.
        sheet: optional string, the name of a sheet. By default the first one that is
            visible and has cells.

    Raises:
        AlbertError: if the workbook is damaged or has no such sheet.
    """
    openpyxl = import_extra("openpyxl")
    with open(path, "rb") as file:
        try:
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except (KeyError, TypeError, ValueError, SyntaxError, zipfile.BadZipFile) as e:
            raise AlbertError(
                f"{path} cannot be read as .xlsx: {e}. Save it again in Excel."
            ) from e
        for each in workbook.worksheets:
            # The cells count. The size that a sheet states may be wrong.
            each.reset_dimensions()
        chosen = _choose(path, workbook.worksheets, sheet)
        rows = [list(map(_typed, row)) for row in chosen.iter_rows(values_only=True)]
        # In read-only mode, openpyxl reads cells only.
        layout = _read_layout(path, chosen._worksheet_path)
    _warn_of_hidden(path, rows, layout)
    if layout.merged:
        _fill_merged(rows, layout.merged)
        warnings.warn(
            f"{path} has {len(layout.merged):,} merged cells, such as "
            f"{layout.merged[0]}. The value of each is read in all of its rows, and in "
            "the first of its columns.",
            stacklevel=3,
        )
    # Sheets may end with columns that have a format only.
    width = max((i for row in rows for i, cell in enumerate(row, 1) if cell), default=0)
    for number, row in enumerate(rows, start=1):
        if any(row):
            yield f"Row {number} of {path}", row[:width] + [""] * (width - len(row))


def _choose(path, sheets, name):
    """Return the sheet of a name, or the first visible one that has cells."""
    titles = [x.title for x in sheets]
    if name is not None:
        if name not in titles:
            raise AlbertError(f"{path} has no sheet {name!r}. Its sheets are {titles}.")
        return sheets[titles.index(name)]
    filled = [x for x in sheets if _has_cells(x)]
    visible = [x for x in filled if x.sheet_state == "visible"]
    if not filled:
        raise AlbertError(f"{path} has no examples: its sheets {titles} are empty.")
    chosen = (visible or filled)[0]
    if len(filled) > 1:
        shown = [
            f"{x.title!r}{'' if x.sheet_state == 'visible' else ' (hidden)'}"
            for x in filled
        ]
        warnings.warn(
            f"{path} has the sheets {', '.join(shown)}. Read is {chosen.title!r}. Name "
            "another one with `sheet=`.",
            stacklevel=4,
        )
    return chosen


def _has_cells(sheet):
    rows = sheet.iter_rows(values_only=True)
    return any(cell is not None for row in rows for cell in row)


def _typed(value):
    """Return a cell as people see it: 1 for 1.0, a date without the time 0:00."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value)


# === Hidden and merged cells ===


def _read_layout(path, part: str) -> _Layout:
    """Read what the XML of a sheet has beside its cells, in pieces."""
    layout = _Layout(set(), [], [])
    with zipfile.ZipFile(path) as archive, archive.open(part) as file:
        for piece in _pieces_at_tags(file):
            for attributes in map(_attributes, _ROW.findall(piece)):
                if attributes.get("hidden") in ("1", "true"):
                    layout.hidden_rows.add(int(attributes.get("r", 0)))
            for attributes in map(_attributes, _COLUMN.findall(piece)):
                if attributes.get("hidden") in ("1", "true"):
                    bounds = int(attributes["min"]), int(attributes["max"])
                    layout.hidden_columns.append(bounds)
            for attributes in map(_attributes, _MERGED.findall(piece)):
                layout.merged.append(attributes["ref"])
    return layout


def _pieces_at_tags(file: Any) -> Iterable[bytes]:
    """Yield the content of an XML file in pieces that end before a tag."""
    rest = b""
    while chunk := file.read(_CHUNK):
        data = rest + chunk
        end = data.rfind(b"<")
        yield data[:end]
        rest = data[end:]
    yield rest


def _attributes(tag: bytes) -> dict[str, str]:
    return {k.decode(): x.decode() for k, x in _ATTRIBUTE.findall(tag)}


def _warn_of_hidden(path, rows, layout):
    filled = {i for i, row in enumerate(rows, start=1) if any(row)}
    width = max(map(len, rows), default=0)
    hidden = sorted(layout.hidden_rows & filled)
    columns = [first for first, _ in layout.hidden_columns if first <= width]
    parts = []
    if hidden:
        parts.append(f"{len(hidden):,} hidden rows, the first row {hidden[0]}")
    if columns:
        parts.append("hidden columns")
    if parts:
        warnings.warn(
            f"{path} has {' and '.join(parts)}. They are read as the others. To leave "
            "them out, copy the visible cells into another sheet.",
            stacklevel=3,
        )


def _fill_merged(rows: list[list[str]], merged: list[str]) -> None:
    """Write the value of each merged cell into the first column of all its rows."""
    column_number = import_extra("openpyxl.utils").column_index_from_string
    for name in merged:
        if (found := _RANGE.fullmatch(name)) is None:
            continue
        letters, first, _, last = found.groups()
        column, top = column_number(letters) - 1, int(first) - 1
        if top >= len(rows) or column >= len(rows[top]):
            continue
        for row in rows[top + 1 : int(last)]:
            row.extend([""] * (column + 1 - len(row)))
            row[column] = rows[top][column]
