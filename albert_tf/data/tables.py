"""Read tables of texts, with their labels or without."""

from __future__ import annotations

import copy
import itertools
import os
import pathlib
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from albert_tf.data.columns import (
    COLUMN_NAMES,
    begins_with_names,
    distinct_names,
    find_by_content,
    may_have_header,
    named_columns,
)
from albert_tf.data.forms import flat, label_value
from albert_tf.data.headers import (
    HEADER_ROWS,
    column_names,
    header_index,
    without_titles,
)
from albert_tf.data.labels import without_headers
from albert_tf.data.reading import endings, is_json, stream_lines
from albert_tf.data.rows import HEAD_LINES, read_rows
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import is_missing

# Suffixes of files whose first line is a header more often than an example.
_USUALLY_WITH_HEADER = (".csv", ".tsv", ".xlsx")


class MissingColumnError(AlbertError):
    """A file lacks a column that was named."""


class Table:
    """The rows of a file, and the columns that are given or named in its header.

    Attributes:
        header: list of distinct strings; without a header line, the numbers of the
            columns.
        places, rows: the place of each row in the file, and its cells.
        columns: dict, the positions of the columns that were found.
        named: set of strings, the roles of the columns that were named.
        objects: the rows as dicts, if the file has such; otherwise an empty list.
    """

    objects: list[dict[str, Any]]
    places: list[str]
    rows: list[Any]

    def __init__(
        self,
        path: str | os.PathLike,
        rows: Iterable[tuple[str, Any]] | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        **given: str | int | None,
    ):
        self.path = path = pathlib.Path(path)
        rows = list(read_rows(path, encoding, sheet) if rows is None else rows)
        has_objects = bool(rows) and isinstance(rows[0][1], dict)
        named = {role: str(name) for role, name in given.items() if name is not None}
        self.named = set(named)
        if not has_objects:
            names = [name for name in named.values() if not name.isdecimal()]
            are_numbered = bool(named) and not names
            rows = without_titles(path, rows, names, are_numbered)
        first = rows[0][1] if rows else []
        self.header = [] if has_objects else first
        self._fill(rows)
        self._names = column_names(self.header)
        self.columns = named_columns(self._names)
        self._empty: set[str] = set()
        self.has_header = (
            has_objects
            or bool(self.columns)
            or not all(name.isdecimal() for name in named.values())
            or begins_with_names(self.rows)
        )
        if not self.has_header:
            if len(first) == 1 and named_columns(
                re.split("[,;|，；] *", self._names[0])
            ):
                is_csv = endings(path)[0] == ".csv"
                remedy = "replace them by commas" if is_csv else "name the file .csv"
                raise AlbertError(
                    f"{path} has one column, {first[0]!r}. If this is a header with "
                    f"other separators, {remedy}."
                )
            self.header = [str(i + 1) for i in range(len(first))]
        elif not has_objects:
            rows = without_headers(first, rows[1:])
            self.places, self.rows = [x for x, _ in rows], [x for _, x in rows]
            self.header = distinct_names(first)
            if self.header != first:
                warnings.warn(
                    f"{path} has columns of one name. They are called "
                    f"{self._shown_header}.",
                    stacklevel=2,
                )
        if not self.rows:
            raise AlbertError(
                f"{path} has no examples. Its columns are {self._shown_header}."
            )
        for role, name in named.items():
            if name in self.header:
                self.columns[role] = self.header.index(name)
            elif name.isdecimal() and 1 <= int(name) <= len(self.header):
                self.columns[role] = int(name) - 1
            else:
                raise MissingColumnError(
                    f"{path} has no column {name!r}. Its columns are "
                    f"{self._shown_header}."
                )

    def _fill(self, rows: list[tuple[str, Any]]) -> None:
        self.places, self.rows = [x for x, _ in rows], [x for _, x in rows]
        self.objects = self.rows if rows and isinstance(rows[0][1], dict) else []
        if self.objects:
            records = [flat(*row) for row in rows]
            # Columns keep their positions.
            names = dict.fromkeys(itertools.chain(self.header, *records))
            self.header = list(names)
            self.rows = [list(map(x.get, names)) for x in records]
        width = len(self.header)
        for place, row in zip(self.places, self.rows, strict=True):
            if len(row) != width:
                hint, is_csv = "", endings(self.path)[0] == ".csv"
                if not is_csv and any(x.startswith('"') for x in row):
                    hint = ". Name a file with quoted cells .csv; tabs are found there"
                if width == 1:
                    hint = f". If {self.places[0]} is a title, delete it"
                raise AlbertError(
                    f"{place} has {len(row)} columns, but the first line has {width}: "
                    f"{str(row):.200}{hint}"
                )

    def with_rows(self, rows: list[tuple[str, Any]]) -> Table:
        """Return a table of later rows of the same file, with the same columns."""
        table = copy.copy(self)
        if self.has_header and not self.objects:
            rows = without_headers(self._names, rows)
        table._fill(rows)
        return table

    @property
    def _shown_header(self) -> str:
        """The names of the columns for a message."""
        return listed([f"{name:.80}" for name in self.header], 20)

    # === Columns ===

    def find(self, *roles: str, pairs: bool | None = None) -> None:
        """Find the columns of roles by their names or, without a header, by content.

        What is found by content, or one of several names, is announced by a warning.

        Args:
            *roles: strings, keys of `COLUMN_NAMES`.
            pairs: optional bool. With `None`, the texts found by content may be pairs.

        Raises:
            AlbertError: if a role has several columns or, without a header, none.
        """
        columns, cells = self.columns, list(zip(*self.rows, strict=True))
        if self.has_header:
            for role in {*roles} & {*columns} - self.named:
                self._check_names(role, roles)
        elif {*roles} - {*columns}:
            columns |= find_by_content(str(self.path), cells, columns, roles, pairs)
            found = {x: i for x, i in columns.items() if x in (*roles, "text_b")}
            unused = {*range(len(cells))} - {*found.values()}
            order = sorted(found, key="label".__eq__)
            parts = [f"{role}: column {found[role] + 1}" for role in order]
            parts += [f"not used: column {i + 1}" for i in sorted(unused)]
            # A list of texts needs no header, but a table may have one.
            if len(cells) > 1 or endings(self.path)[0] in _USUALLY_WITH_HEADER:
                message = f"{self.path} has no header. {', '.join(parts)}."
                warnings.warn(message, stacklevel=3)
        elif "label" in roles and may_have_header(cells[columns["label"]]):
            message = f"{self.places[0]} may be a header. It is read as an example."
            warnings.warn(message, stacklevel=3)

    def _check_names(self, role: str, roles: Sequence[str]) -> None:
        """Raise if a role has two columns of one name; warn if it has other names."""
        name = self._names[self.columns[role]]
        if self._names.count(name) > 1:
            raise AlbertError(
                f"{self.path} has {self._names.count(name)} columns {name!r}. Give the "
                f"number of the right one as `{role}=`."
            )
        taken = {self._names[i] for x, i in self.columns.items() if x in roles}
        others = [x for x in COLUMN_NAMES[role] if x in self._names and x not in taken]
        # CLUE has the number of a class beside its name.
        if others and not name.startswith((role, "label")):
            warnings.warn(
                f"{self.path}: the {role} is the column {name!r}, not {others}. Name "
                f"another one with `{role}=`.",
                stacklevel=4,
            )

    # === Cells ===

    def cells(self, *roles: str) -> Any:
        """Return the cells of each column as strings; of a list, its parts.

        Empty ones are counted in a warning.
        """
        return tuple(map(self._strings, roles))

    def _strings(self, role):
        strings, empty = [], []
        for place, cell in zip(self.places, self.column(role), strict=True):
            parts = cell if isinstance(cell, list) else [cell]
            if any(isinstance(x, (dict, list, bool)) for x in parts):
                raise AlbertError(
                    f"{place} has {str(cell)[:80]} in the column {role!r}. Expected a "
                    'string. pandas writes one object per row with orient="records".'
                )
            strings.append(" ".join(map(str, parts)))
            if not strings[-1].strip():
                empty.append(place)
        if empty and role not in self._empty:
            # Not again for later rows of the file.
            self._empty.add(role)
            count, hint = f"At least {len(empty)}", ""
            if len(empty) == len(strings):
                count = "All"
                if endings(self.path)[0] == ".xlsx":
                    hint = " Formulas that Excel never computed have no results."
            warnings.warn(
                f"{count} cells of the column {role!r} are empty, the first in "
                f"{empty[0]}.{hint}",
                stacklevel=4,
            )
        return strings

    def labels(self) -> list:
        """Return the labels as in the file; a list if there are several.

        Raise if a label is a span of a text.
        """
        labels = list(map(label_value, self.column("label", may_lack=True)))
        for place, label in zip(self.places, labels, strict=True):
            # CLUENER has a dict of dicts.
            parts = [*label.values()] if isinstance(label, dict) else label
            are_parts = isinstance(parts, list)
            if are_parts and any(isinstance(x, (dict, list)) for x in parts):
                raise AlbertError(
                    f"{place} has spans instead of a label: {str(label)[:80]}. Learn "
                    "them by finetune --task token-classification, or read them by "
                    "`read_tagged_texts`."
                )
        return labels

    def texts(self, pairs: bool = False) -> Any:
        """Return the texts, or a tuple of two lists for pairs."""
        roles = ("text", "text_b") if pairs else ("text",)
        self.find(*roles, pairs=pairs)
        return self.cells(*roles) if pairs else self.cells("text")[0]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts; without a header, found columns have their role."""
        if self.objects:
            return self.objects
        roles = {} if self.has_header else {x: role for role, x in self.columns.items()}
        names = [roles.get(i, name) for i, name in enumerate(self.header)]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def column(self, role: str, may_lack: bool = False) -> list:
        """Return the cells of a column; those of JSON may have any type."""
        if role not in self.columns:
            # The arguments of `read_labelled_texts`.
            has_argument = role in ("label", "text", "text_b")
            raise AlbertError(
                f"{self.path} has no {role} column. Its columns are "
                f"{self._shown_header}. Name it "
                f"{f'with `{role}=`, or ' * has_argument}in the header as one of "
                f"{', '.join(COLUMN_NAMES[role])}."
            )
        column = self.columns[role]
        for place, row in zip(self.places, self.rows, strict=True):
            if is_missing(row[column]) and not may_lack:
                raise AlbertError(
                    f"{place} has no value in the field {self.header[column]!r}: it is "
                    "missing, null or NaN. Write one, or delete the row."
                )
        return [row[column] for row in self.rows]


def table_blocks(
    path: str | os.PathLike,
    size: int,
    encoding: str | None = None,
    sheet: str | None = None,
    **given: Any,
) -> Iterator[Table]:
    """Read a file in tables of `size` rows. The first decides on header and columns.

    `given` are those of `Table`.
    """
    rows = read_rows(path, encoding, sheet)
    # With the header.
    table = Table(path, itertools.islice(rows, size + 1), **given)
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
    head = [line for line in lines if line.strip()] or [""]
    rows = [line.split("\t") for line in head[:HEADER_ROWS]]
    header = header_index(rows)
    # A line below the first that has one cell is a text.
    has_header = header is not None and (header == 0 or len(rows[header]) > 1)
    if is_json(head[0]) or has_header:
        return False
    tabs = {line.count("\t") for line in head}
    return len(tabs) > 1 or max(tabs) < len(fields) or "choices" in fields
