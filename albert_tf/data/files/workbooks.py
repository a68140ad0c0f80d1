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
from albert_tf_lite.archives import check_zip
from albert_tf_lite.errors import AlbertError, first_line

_CHUNK = 2**20
# The rows of a sheet in Excel.
_MOST_ROWS = 2**20
# Sheets of equal cells are compressed to a hundredth.
_MOST_EXPANSION = 400
_ROW = re.compile(rb"<(?:\w+:)?row\s([^>]*)")
_COLUMN = re.compile(rb"<(?:\w+:)?col\s([^>]*)")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s([^>]*)")
_ATTRIBUTE = re.compile(rb"(\w+)\s*=\s*[\"']([^\"']*)")
_RANGE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{,6}):([A-Z]{1,3})([1-9][0-9]{,6})")


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
    try:
        check_zip(path, _MOST_EXPANSION)
        table, layout = _read_sheet(path, sheet)
    except (AlbertError, Warning):
        raise
    # openpyxl, which builds objects from XML, raises errors of any class.
    except Exception as error:
        raise AlbertError(
            f"{path} cannot be read as .xlsx: {first_line(error)}. Save it again in "
            "Excel."
        ) from error
    _warn_of_hidden(path, table, layout)
    if layout.merged:
        _fill_merged(table, layout.merged)
        warnings.warn(
            f"{path} has {len(layout.merged):,} merged cells, such as "
            f"{layout.merged[0]}. The value of each is read in all of its rows, and in "
            "the first of its columns.",
            stacklevel=3,
        )
    # Sheets may end with columns that have a format only.
    width = max(map(_filled_width, table), default=0)
    for number, cells in enumerate(table, start=1):
        if any(cells):
            padding = [""] * (width - len(cells))
            yield f"Row {number} of {path}", cells[:width] + padding


def _read_sheet(
    path: str | os.PathLike, sheet: str | None
) -> tuple[list[list[str]], _Layout]:
    """Return the cells of a sheet without empty ones at the end of rows."""
    openpyxl = import_extra("openpyxl")
    with open(path, "rb") as file:
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
        for worksheet in workbook.worksheets:
            # The cells count. The size that a sheet states may be wrong.
            worksheet.reset_dimensions()
        chosen = _choose(path, workbook.worksheets, sheet)
        table = []
        for values in _rows(path, chosen):
            cells = [_typed(value) for value in values]
            table.append(cells[: _filled_width(cells)])
        # In read-only mode, openpyxl reads cells only.
        return table, _read_layout(path, chosen._worksheet_path)


def _rows(path: str | os.PathLike, sheet: Any) -> Iterator[tuple]:
    """Yield the rows of a sheet; raise if it has more than Excel allows.

    For a row that states a number, openpyxl makes all rows above it.
    """
    for number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > _MOST_ROWS:
            raise AlbertError(
                f"{path} has a row after the last one of Excel, {_MOST_ROWS:,}. Save "
                "it again in Excel."
            )
        yield values


def _filled_width(cells: list[str]) -> int:
    """Return the number of cells up to the last one that is not empty."""
    filled = [number for number, cell in enumerate(cells, start=1) if cell]
    return filled[-1] if filled else 0


def _choose(path: str | os.PathLike, sheets: list[Any], name: str | None) -> Any:
    """Return the sheet of a name, or the first visible one that has cells."""
    titles = [sheet.title for sheet in sheets]
    if name is not None:
        if name not in titles:
            raise AlbertError(f"{path} has no sheet {name!r}. Its sheets are {titles}.")
        return sheets[titles.index(name)]
    filled = [sheet for sheet in sheets if _has_cells(path, sheet)]
    if not filled:
        raise AlbertError(f"{path} has no examples: its sheets {titles} are empty.")
    visible = [sheet for sheet in filled if sheet.sheet_state == "visible"]
    chosen = (visible or filled)[0]
    if len(filled) > 1:
        warnings.warn(
            f"{path} has the sheets {', '.join(map(_shown_title, filled))}. Read is "
            f"{chosen.title!r}. Name another one with `sheet=`.",
            stacklevel=5,
        )
    return chosen


def _shown_title(sheet: Any) -> str:
    hidden = "" if sheet.sheet_state == "visible" else " (hidden)"
    return f"{sheet.title!r}{hidden}"


def _has_cells(path: str | os.PathLike, sheet: Any) -> bool:
    return any(cell is not None for cells in _rows(path, sheet) for cell in cells)


def _typed(value: object) -> str:
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


def _read_layout(path: str | os.PathLike, part: str) -> _Layout:
    """Read what the XML of a sheet has beside its cells, in pieces."""
    layout = _Layout(set(), [], [])
    with zipfile.ZipFile(path) as archive, archive.open(part) as file:
        for piece in _pieces_at_tags(file):
            for attributes in _all_attributes(_ROW, piece):
                if _is_hidden(attributes):
                    layout.hidden_rows.add(int(attributes.get("r", 0)))
            for attributes in _all_attributes(_COLUMN, piece):
                if _is_hidden(attributes):
                    bounds = int(attributes["min"]), int(attributes["max"])
                    layout.hidden_columns.append(bounds)
            for attributes in _all_attributes(_MERGED, piece):
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


def _all_attributes(tag: re.Pattern[bytes], piece: bytes) -> Iterator[dict[str, str]]:
    """Yield the attributes of each tag in a piece of XML."""
    for content in tag.findall(piece):
        names_and_values = _ATTRIBUTE.findall(content)
        yield {name.decode(): value.decode() for name, value in names_and_values}


def _is_hidden(attributes: dict[str, str]) -> bool:
    return attributes.get("hidden") in ("1", "true")


def _warn_of_hidden(
    path: str | os.PathLike, table: list[list[str]], layout: _Layout
) -> None:
    filled = {number for number, cells in enumerate(table, start=1) if any(cells)}
    width = max(map(len, table), default=0)
    hidden = sorted(layout.hidden_rows & filled)
    kinds = []
    if hidden:
        kinds.append(f"{len(hidden):,} hidden rows, the first row {hidden[0]}")
    if any(first <= width for first, _ in layout.hidden_columns):
        kinds.append("hidden columns")
    if kinds:
        warnings.warn(
            f"{path} has {' and '.join(kinds)}. They are read as the others. To leave "
            "them out, copy the visible cells into another sheet.",
            stacklevel=3,
        )


def _fill_merged(table: list[list[str]], merged: list[str]) -> None:
    """Write the value of each merged cell into the first column of all its rows."""
    column_number = import_extra("openpyxl.utils").column_index_from_string
    for name in merged:
        cell_range = _RANGE.fullmatch(name)
        if cell_range is None:
            continue
        letters, first, _, last = cell_range.groups()
        column, top = column_number(letters) - 1, int(first) - 1
        if top >= len(table) or column >= len(table[top]):
            continue
        for cells in table[top + 1 : int(last)]:
            cells.extend([""] * (column + 1 - len(cells)))
            cells[column] = table[top][column]
