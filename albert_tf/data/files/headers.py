"""Find the header of a table, below title lines that offices write above it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence

from albert_tf.data.files.column_names import comparable, named_columns
from albert_tf.data.files.row import Row
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import number_of

# The number of rows in which a header is looked for.
HEADER_ROWS = 20
# Characters of a row that messages show.
_SHOWN = 60


def header_index(
    table: Sequence[Sequence], given: Sequence[str] = (), strict: bool = False
) -> int | None:
    """Return the position of the row that names the columns, `None` without one.

    It is the first row that has all of the `given` names. Without such, it is the first
    row if that has a known name; or one of the next rows that has two known names and
    no number; or one of these with one known name, if each row above has one cell.

    Args:
        table: list of lists of cells, the first rows of a table.
        given: list of strings, names of columns.
        strict: bool. Whether a row below others needs two known names.
    """
    if given:
        return _index_of_names(table, given)
    above_are_titles = True
    for index, cells in enumerate(table[:HEADER_ROWS]):
        known = _count_names(cells)
        if known and index == 0:
            return index
        is_enough = known > 1 or (known == 1 and above_are_titles and not strict)
        if is_enough and not _has_number(cells):
            return index
        above_are_titles = above_are_titles and _filled(cells) <= 1
    return None


def _index_of_names(table: Sequence[Sequence], given: Sequence[str]) -> int | None:
    """Return the position of the first row that has all names."""
    for index, cells in enumerate(table[:HEADER_ROWS]):
        if all(name in cells for name in given):
            return index
    return None


def without_titles(
    path: str | os.PathLike,
    rows: list[Row],
    given: Sequence[str] = (),
    are_numbered: bool = False,
) -> list[Row]:
    """Return the rows of a table from its header on; warn of titles above it.

    A title is a row with one filled cell.

    Args:
        path: path of the file, for messages.
        rows: list of `Row`.
        given: list of strings, names of columns that are in the header.
        are_numbered: bool. Whether columns are given by their numbers.

    Raises:
        AlbertError: if other rows than titles are above the header, another header is
            below it, or the first row may be a title or not. Names the rows.
    """
    table = [row.cells for row in rows[:HEADER_ROWS]]
    index = header_index(table, given, are_numbered)
    if index is None and given:
        # The error about the missing columns shows the others.
        index = header_index(table)
    if index is None:
        _check_first_row(rows, are_numbered)
        return rows
    if index:
        _warn_of_titles(rows[:index], rows[index])
    _check_second_header(rows[index:], given)
    return rows[index:]


def without_repeated_headers(header: Sequence[str], rows: Iterable[Row]) -> list[Row]:
    """Leave out, with a warning, rows that repeat the header.

    Files that were joined have such rows.
    """
    names = comparable(header)
    kept, places = [], []
    for row in rows:
        if _repeats(names, row.cells):
            places.append(row.place)
        else:
            kept.append(row)
    if places:
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        warnings.warn(
            f"The header is repeated: {', '.join(places[:3])}{more}. Skipped.",
            stacklevel=4,
        )
    return kept


def _repeats(names: list[str], cells: Sequence) -> bool:
    # Nearly all rows differ in the first cell, which is compared without cleaning.
    if not names or not str(cells[0]).strip().lower().endswith(names[0]):
        return False
    return comparable(cells) == names


def _warn_of_titles(above: list[Row], header: Row) -> None:
    """Warn of the titles above a header; raise if they may be examples."""
    shown = "; ".join(f"{_start(row.place)}: {_show(row.cells)}" for row in above[:3])
    if len(above) > 3:
        shown += f"; and {len(above) - 3} more"
    if any(_filled(row.cells) > 1 for row in above) or _filled(header.cells) < 2:
        raise AlbertError(
            f"{header.place} looks like the header, {_show(header.cells)}, but there "
            f"are rows above it ({shown}). Delete them or, if they are examples, move "
            "this row to the top or delete it."
        )
    warnings.warn(
        f"{header.place} is read as the header. Above it are titles: {shown}.",
        stacklevel=4,
    )


def _check_first_row(rows: list[Row], are_numbered: bool) -> None:
    """Raise or warn if the first row may be a title above examples or a header."""
    widths = [_filled(row.cells) for row in rows[:HEADER_ROWS]]
    if widths[:1] != [1] or widths.count(1) > 1 or len(widths) < 3:
        return
    first = rows[0]
    message = (
        f"{first.place} has one filled cell, {_show(first.cells)}, and other rows have "
        "more."
    )
    if not are_numbered:
        raise AlbertError(
            f"{message} If it is a title, delete it. If it is an example, write a "
            "header above it, or number the text column with `text=`."
        )
    warnings.warn(f"{message} It is read as an example.", stacklevel=4)


def _check_second_header(rows: list[Row], given: Sequence[str]) -> None:
    """Raise if the row below a header looks like another one."""
    if len(rows) < 2 or given:
        return
    header, below = rows[0], rows[1]
    is_header = _count_names(below.cells) > 1 and not _has_number(below.cells)
    if is_header and comparable(below.cells) != comparable(header.cells):
        raise AlbertError(
            f"{below.place} looks like a second header, {_show(below.cells)}, below "
            f"{_show(header.cells)}. Delete one of them."
        )


def _count_names(cells: Sequence) -> int:
    """Return the number of columns that have a known name."""
    return len(set(named_columns(comparable(cells)).values()))


def _has_number(cells: Sequence) -> bool:
    return any(number_of(name) is not None for name in comparable(cells))


def _filled(cells: Sequence) -> int:
    return sum(bool(str(cell).strip()) for cell in cells)


def _show(cells: Sequence) -> str:
    text = ", ".join(str(cell) for cell in cells if str(cell).strip())
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def _start(place: str) -> str:
    """Return "line 3" of "Line 3 of a.csv"."""
    name, _, _ = place.partition(" of ")
    return name.lower()
