"""Tables: rows with their places, and columns found by name, number or position."""

from __future__ import annotations

import copy
import itertools
import os
import pathlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from albert_tf.data.files.annotation_tools import unfold
from albert_tf.data.files.column_names import (
    COLUMN_NAMES,
    comparable,
    distinct_names,
    named_columns,
)
from albert_tf.data.files.compression import endings
from albert_tf.data.files.headers import (
    HEADER_ROWS,
    header_index,
    without_repeated_headers,
    without_titles,
)
from albert_tf.data.files.json_values import is_json
from albert_tf.data.files.row import Row
from albert_tf.data.files.table_formats import HEAD_LINES, read_rows
from albert_tf.data.files.text_lines import stream_lines
from albert_tf.data.files.unnamed_columns import (
    header_doubt,
    shown_row,
    unnamed_columns,
)
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import is_missing

# Suffixes of files whose first line is a header more often than an example.
_USUALLY_WITH_HEADER = (".csv", ".tsv", ".xlsx")
# The roles that readers of labelled texts take as arguments.
_ARGUMENTS = ("label", "text", "text_b")

# The columns of roles that were named, or numbered from 1; `None` if to be found.
GivenColumns = Mapping[str, str | int | None]


class MissingColumnError(AlbertError):
    """A file lacks a column that was named."""


class Table:
    """The rows of a file, and the columns that are given or named in its header.

    Attributes:
        header: list of distinct strings; without a header line, the numbers of the
            columns.
        has_header: bool. Whether a line or the objects name the columns.
        places: list of strings, the place of each row in the file.
        cells_by_row: list of lists, the cells of each row.
        columns: dict, the positions of the columns that were found, by role.
        given: set of strings, the roles of the columns that were named or numbered.
        objects: the rows as dicts, if the file has such; otherwise an empty list.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        rows: Sequence[Row],
        given: GivenColumns | None = None,
    ):
        self.path = pathlib.Path(path)
        named = {}
        for role, name in (given or {}).items():
            if name is not None:
                named[role] = str(name)
        self.given = set(named)
        # The roles whose empty cells have been announced.
        self._announced: set[str] = set()
        # Whether the rows are later ones of a file, whose columns are known.
        self._is_later = False
        self.header: list[str] = []
        # The header as it was written, for comparisons.
        self._names: list[str] = []
        self._has_objects = bool(rows) and rows[0].record is not None
        self.has_header = self._has_objects
        rows = list(rows)
        if not self._has_objects:
            rows = self._take_header(rows, list(named.values()))
        self._fill(rows)
        if not rows:
            raise AlbertError(
                f"{path} has no examples. Its columns are {self._shown_header}."
            )
        if self._has_objects:
            self._names = comparable(self.header)
        self.columns: dict[str, int] = {}
        if self.has_header:
            self.columns = named_columns(self._names)
        for role, name in named.items():
            self.columns[role] = self._position(name)

    def with_rows(self, rows: Sequence[Row]) -> Table:
        """Return a table of later rows of the same file, with the same columns."""
        table = copy.copy(self)
        table._is_later = True
        rows = list(rows)
        if not self._has_objects:
            self._check_widths(rows, len(self.header), rows[0].place)
            if self.has_header:
                rows = without_repeated_headers(self._names, rows)
        table._fill(rows)
        return table

    # === Header and rows ===

    def _take_header(self, rows: list[Row], given: list[str]) -> list[Row]:
        """Set the header of a table of cells, and return the rows below it."""
        names = [name for name in given if not name.isdecimal()]
        are_numbered = bool(given) and not names
        kept = without_titles(self.path, rows, names, are_numbered)
        first = kept[0].cells if kept else []
        if kept:
            self._check_widths(kept, len(first), kept[0].place)
        self._names = comparable(first)
        self.has_header = bool(named_columns(self._names) or names)
        if not self.has_header:
            self._check_separator(first)
            self.header = [str(number) for number in range(1, len(first) + 1)]
            return kept
        self.header = distinct_names(first)
        if self.header != first:
            warnings.warn(
                f"{self.path} has columns of one name. They are called "
                f"{self._shown_header}.",
                stacklevel=5,
            )
        return without_repeated_headers(first, kept[1:])

    def _fill(self, rows: list[Row]) -> None:
        """Set the rows; objects may add columns to the header."""
        self.places = [row.place for row in rows]
        self.objects: list[dict[str, Any]] = []
        if not self._has_objects:
            self.cells_by_row: list[list[Any]] = [row.cells for row in rows]
            return
        self.objects = [row.record or {} for row in rows]
        records = [unfold(row.place, row.record or {}) for row in rows]
        # Columns keep their positions.
        self.header = list(dict.fromkeys(itertools.chain(self.header, *records)))
        self.cells_by_row = [
            [record.get(name) for name in self.header] for record in records
        ]

    def _check_widths(self, rows: list[Row], width: int, first_place: str) -> None:
        """Raise if a row has another number of cells than the first."""
        for row in rows:
            if len(row.cells) != width:
                raise AlbertError(
                    f"{row.place} has {len(row.cells)} columns, but the first line has "
                    f"{width}: {str(row.cells):.200}"
                    f"{self._width_hint(row, width, first_place)}"
                )

    def _width_hint(self, row: Row, width: int, first_place: str) -> str:
        if width == 1:
            return f". If {first_place} is a title, delete it"
        is_csv = endings(self.path)[0] == ".csv"
        if not is_csv and any(cell.startswith('"') for cell in row.cells):
            return ". Name a file with quoted cells .csv; tabs are found there"
        return ""

    def _check_separator(self, first: list[str]) -> None:
        """Raise if the first row may be a header with unknown separators."""
        if len(first) != 1:
            return
        if named_columns(re.split("[,;|，；] *", self._names[0])):
            is_csv = endings(self.path)[0] == ".csv"
            remedy = "replace them by commas" if is_csv else "name the file .csv"
            raise AlbertError(
                f"{self.path} has one column, {first[0]!r}. If this is a header with "
                f"other separators, {remedy}."
            )

    def _position(self, name: str) -> int:
        """Return the position of a column by its name, or by its number from 1."""
        if name in self.header:
            return self.header.index(name)
        if name.isdecimal() and 1 <= int(name) <= len(self.header):
            return int(name) - 1
        raise MissingColumnError(
            f"{self.path} has no column {name!r}. Its columns are {self._shown_header}."
        )

    @property
    def _shown_header(self) -> str:
        """The names of the columns for a message."""
        return listed([f"{name:.80}" for name in self.header], 20)

    # === Columns ===

    def find(self, *roles: str) -> None:
        """Find the columns of roles by their names or, without a header, by position.

        What is found without a header, or by one of several names, is announced by a
        warning.

        Args:
            *roles: strings, keys of `COLUMN_NAMES`.

        Raises:
            AlbertError: if a role has several columns or, without a header, none.
        """
        if self._is_later:
            return
        if self.has_header:
            for role in roles:
                if role in self.columns and role not in self.given:
                    self._check_names(role, roles)
            return
        columns = list(zip(*self.cells_by_row, strict=True))
        if self.given.issuperset(roles):
            self._warn_of_header(columns)
            return
        self.columns = unnamed_columns(self.path, columns, self.columns, roles)
        self._announce(columns)
        if self.given:
            self._warn_of_header(columns)

    def _announce(self, columns: Sequence[Sequence[str]]) -> None:
        """Warn of what is read without a header."""
        # A list of texts needs no header, but a table may have one.
        if len(columns) == 1 and endings(self.path)[0] not in _USUALLY_WITH_HEADER:
            return
        announced = [role for role in self.columns if role != "label"]
        if "label" in self.columns:
            announced.append("label")
        parts = [f"{role}: column {self.columns[role] + 1}" for role in announced]
        for position in range(len(columns)):
            if position not in self.columns.values():
                parts.append(f"not used: column {position + 1}")
        warnings.warn(
            f"{self.path} has no header. {', '.join(parts)}. {shown_row(columns)}",
            stacklevel=4,
        )

    def _warn_of_header(self, columns: Sequence[Sequence[str]]) -> None:
        """Warn if the first row, which is read, may be a header."""
        if reason := header_doubt(columns, self.columns.get("label")):
            warnings.warn(
                f"{self.places[0]} may be a header: {reason}. It is read as an "
                "example. If it is a header, name the columns, and do not number them. "
                f"{shown_row(columns)}",
                stacklevel=4,
            )

    def _check_names(self, role: str, roles: Sequence[str]) -> None:
        """Raise if a role has two columns of one name; warn if it has other names."""
        name = self._names[self.columns[role]]
        if self._names.count(name) > 1:
            raise AlbertError(
                f"{self.path} has {self._names.count(name)} columns {name!r}. Give the "
                f"number of the right one as `{role}=`."
            )
        taken = {self._names[self.columns[x]] for x in roles if x in self.columns}
        others = [x for x in COLUMN_NAMES[role] if x in self._names and x not in taken]
        # CLUE has the number of a class beside its name.
        if others and not name.startswith((role, "label")):
            warnings.warn(
                f"{self.path}: the {role} is the column {name!r}, not {others}. Name "
                f"another one with `{role}=`.",
                stacklevel=4,
            )

    # === Cells ===

    def column(self, role: str, may_lack: bool = False) -> list[Any]:
        """Return the cells of a column; those of JSON may have any type."""
        if role not in self.columns:
            remedy = f"with `{role}=`, or " if role in _ARGUMENTS else ""
            raise AlbertError(
                f"{self.path} has no {role} column. Its columns are "
                f"{self._shown_header}. Name it {remedy}in the header as one of "
                f"{', '.join(COLUMN_NAMES[role])}."
            )
        position = self.columns[role]
        column = [cells[position] for cells in self.cells_by_row]
        for place, cell in zip(self.places, column, strict=True):
            if is_missing(cell) and not may_lack:
                raise AlbertError(
                    f"{place} has no value in the field {self.header[position]!r}: it "
                    "is missing, null or NaN. Write one, or delete the row."
                )
        return column

    def strings(self, role: str) -> list[str]:
        """Return the cells of a column as strings; of a list, its parts.

        Empty ones are counted in a warning.
        """
        strings, empty = [], []
        for place, cell in zip(self.places, self.column(role), strict=True):
            parts = cell if isinstance(cell, list) else [cell]
            if any(isinstance(value, (dict, list, bool)) for value in parts):
                raise AlbertError(
                    f"{place} has {str(cell)[:80]!r} in the column {role!r}. Expected "
                    'a string. pandas writes one object per row with orient="records".'
                )
            strings.append(" ".join(map(str, parts)))
            if not strings[-1].strip():
                empty.append(place)
        # Not again for later rows of the file.
        if empty and role not in self._announced:
            self._announced.add(role)
            self._warn_of_empty(role, empty)
        return strings

    def _warn_of_empty(self, role: str, places: list[str]) -> None:
        count, hint = f"At least {len(places)}", ""
        if len(places) == len(self.places):
            count = "All"
            if endings(self.path)[0] == ".xlsx":
                hint = " Formulas that Excel never computed have no results."
        warnings.warn(
            f"{count} cells of the column {role!r} are empty, the first in "
            f"{places[0]}.{hint}",
            stacklevel=4,
        )

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts; without a header, found columns have their role."""
        if self.objects:
            return self.objects
        names = list(self.header)
        if not self.has_header:
            for role, position in self.columns.items():
                names[position] = role
        return [dict(zip(names, cells, strict=True)) for cells in self.cells_by_row]


# === Files ===


def read_table(
    path: str | os.PathLike,
    encoding: str | None = None,
    sheet: str | None = None,
    given: GivenColumns | None = None,
) -> Table:
    """Read a file as a table. `given` are columns by their names or numbers."""
    return Table(path, list(read_rows(path, encoding, sheet)), given)


def table_blocks(
    path: str | os.PathLike,
    size: int,
    encoding: str | None = None,
    sheet: str | None = None,
    given: GivenColumns | None = None,
) -> Iterator[Table]:
    """Read a file in tables of `size` rows. The first decides on header and columns."""
    rows = read_rows(path, encoding, sheet)
    # With the header.
    table = Table(path, list(itertools.islice(rows, size + 1)), given)
    yield table
    while block := list(itertools.islice(rows, size)):
        yield table.with_rows(block)


def holds_lines(
    path: str | os.PathLike, encoding: str | None, fields: Sequence[str]
) -> bool:
    """Return whether each line of a file is an example, with tabs between its fields.

    Only a `.txt` file can be so. It is a table if it has a header, also below a title,
    or more columns than there are fields.
    """
    if endings(path)[0] != ".txt":
        return False
    lines = itertools.islice(stream_lines(path, encoding), HEAD_LINES)
    filled = [line for line in lines if line.strip()] or [""]
    table = [line.split("\t") for line in filled[:HEADER_ROWS]]
    header = header_index(table)
    # A line below the first that has one cell is a text.
    has_header = header is not None and (header == 0 or len(table[header]) > 1)
    if is_json(filled[0]) or has_header:
        return False
    tabs = {line.count("\t") for line in filled}
    return len(tabs) > 1 or max(tabs) < len(fields) or "choices" in fields
