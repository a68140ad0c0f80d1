"""Find the header of a table, below title lines that offices write above it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

from albert_tf.data.columns import named_columns
from albert_tf.data.labels import visible
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import number_of

# A header is looked for in so many rows.
HEADER_ROWS = 20
# Characters of a row that messages show.
_SHOWN = 60


def column_names(cells: Sequence) -> list[str]:
    """Return the cells of a header as names to compare."""
    return [visible(str(cell)).lower() for cell in cells]


def header_index(
    rows: Sequence[Sequence], given: Sequence[str] = (), strict: bool = False
) -> int | None:
    """Return the position of the row that names the columns, `None` without one.

    It is the first row that has all of the `given` names. Without such, it is the first
    row if that has a known name; or one of the next rows that has two known names and
    no number; or one of these with one known name, if each row above has one cell.

    Args:
        rows: list of lists of cells, the first rows of a table.
        given: list of strings, names of columns.
        strict: bool. Whether a row below others needs two known names.
    """
    above_are_titles = True
    for i, row in enumerate(rows[:HEADER_ROWS]):
        if given:
            if all(name in row for name in given):
                return i
            continue
        known = _count_names(row)
        is_below = known > 1 or (known == 1 and above_are_titles and not strict)
        if (known and i == 0) or (is_below and not _has_number(row)):
            return i
        above_are_titles &= _filled(row) <= 1
    return None


def without_titles(
    path: str | os.PathLike,
    rows: list[tuple[str, list]],
    given: Sequence[str] = (),
    are_numbered: bool = False,
) -> list[tuple[str, list]]:
    """Return the rows of a table from its header on; warn of titles above it.

    A title is a row with one filled cell.

    Args:
        path: path of the file, for messages.
        rows: list of (place, cells).
        given: list of strings, names of columns that are in the header.
        are_numbered: bool. Whether columns are given by their numbers.

    Raises:
        AlbertError: if other rows than titles are above the header, another header is
            below it, or the first row may be a title or not. Names the rows.
    """
    first_rows = [row for _, row in rows[:HEADER_ROWS]]
    index = header_index(first_rows, given, are_numbered)
    if index is None and given:
        # The error about the missing columns shows the others.
        index = header_index(first_rows)
    if index is None:
        _check_first_row(rows, are_numbered)
        return rows
    place, header = rows[index]
    if index:
        above = rows[:index]
        shown = "; ".join(f"{_start(x)}: {_show(row)}" for x, row in above[:3])
        shown += f"; and {len(above) - 3} more" if len(above) > 3 else ""
        if any(_filled(row) > 1 for _, row in above) or _filled(header) < 2:
            raise AlbertError(
                f"{place} looks like the header, {_show(header)}, but there are rows "
                f"above it ({shown}). Delete them or, if they are examples, move this "
                "row to the top or delete it."
            )
        message = f"{place} is read as the header. Above it are titles: {shown}."
        warnings.warn(message, stacklevel=3)
    _check_second_header(rows[index:], given)
    return rows[index:]


def _check_first_row(rows, are_numbered):
    """Raise or warn if the first row may be a title above examples or a header."""
    widths = [_filled(row) for _, row in rows[:HEADER_ROWS]]
    if widths[:1] != [1] or widths.count(1) > 1 or len(widths) < 3:
        return
    place, first = rows[0]
    message = f"{place} has one filled cell, {_show(first)}, and other rows have more."
    if not are_numbered:
        raise AlbertError(
            f"{message} If it is a title, delete it. If it is an example, write a "
            "header above it, or number the text column with `text=`."
        )
    warnings.warn(f"{message} It is read as an example.", stacklevel=4)


def _check_second_header(rows, given):
    """Raise if the row below a header looks like another one."""
    if len(rows) < 2 or given:
        return
    (_, header), (place, below) = rows[:2]
    is_header = _count_names(below) > 1 and not _has_number(below)
    if is_header and column_names(below) != column_names(header):
        raise AlbertError(
            f"{place} looks like a second header, {_show(below)}, below "
            f"{_show(header)}. Delete one of them."
        )


def _count_names(row):
    """Return the number of columns that have a known name."""
    return len(set(named_columns(column_names(row)).values()))


def _has_number(row):
    return any(number_of(name) is not None for name in column_names(row))


def _filled(row):
    return sum(bool(str(cell).strip()) for cell in row)


def _show(row):
    text = ", ".join(str(cell) for cell in row if str(cell).strip())
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def _start(place):
    """Return "line 3" of "Line 3 of a.csv"."""
    name, _, _ = place.partition(" of ")
    return name.lower()
