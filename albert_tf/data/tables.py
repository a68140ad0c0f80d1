"""Read tables of texts, with their labels or without."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
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
from albert_tf.data.labels import Label, clean_labels, label_lists, without_headers
from albert_tf.data.reading import endings, is_json, stream_lines
from albert_tf.data.rows import HEAD_LINES, read_rows
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import is_missing


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts or pairs of texts, and their labels.

    Attributes:
        x: list of strings, or a tuple of two lists for pairs.
        labels: list of strings; a tuple for a text with a list of labels, `None` for a
            missing label.
        places: list of strings such as "Line 3 of a.tsv".
    """

    x: list[str] | tuple[list[str], list[str]]
    labels: list[Label]
    places: list[str] = dataclasses.field(compare=False)

    @property
    def pairs(self) -> bool:
        """Return whether each example is a pair of texts."""
        return isinstance(self.x, tuple)

    def class_ids(self, classes: Sequence) -> list[int]:
        """Return the position of each label; raise if it is not one of the classes."""
        positions = {str(name): position for position, name in enumerate(classes)}
        expected = f"one of the classes {list(classes)}"
        return self._values(positions.__getitem__, expected)

    def label_lists(
        self, separator: str | None = None, classes: Sequence | None = None
    ) -> list[list[str]]:
        """Return the list of labels of each text; "体育|娱乐" has two, "" none.

        Args, raises: as `albert_tf.data.labels.label_lists`.
        """
        return label_lists(self.labels, self.places, separator, classes)

    def scores(self) -> list[float]:
        """Return the labels as numbers; raise if one is not a finite number."""
        expected = "a number. Name the column of the numbers with `label=`"
        return self._values(_number, expected)

    def without_invalid(self, classes: Sequence | None = None) -> LabelledTexts:
        """Leave out, with a warning, labels that are no classes (`None`: no numbers).

        Nothing is left out if no label is valid.
        """
        known = {str(name): name for name in classes or ()}
        convert = _number if classes is None else known.__getitem__
        values, message = self._converted(convert)
        kept = [i for i, value in enumerate(values) if value is not None]
        if len(kept) in (0, len(values)):
            return self
        warnings.warn(f"{message} Skipped.", stacklevel=2)
        parts = (*(self.x if self.pairs else (self.x,)), self.labels, self.places)
        x: Any
        *x, labels, places = ([part[i] for i in kept] for part in parts)
        return LabelledTexts(tuple(x) if self.pairs else x[0], labels, places)

    def _values(self, function, expected):
        values, message = self._converted(function)
        if None in values:
            raise AlbertError(
                f"{message} Expected {expected}. Correct or skip them "
                "(--skip-invalid, or the method `without_invalid`)."
            )
        return values

    def _converted(self, function):
        """Return the values of the labels, `None` if invalid, and name those."""
        values, wrong = [], []
        for place, label in zip(self.places, self.labels, strict=True):
            try:
                values.append(function(label))
            except (KeyError, TypeError, ValueError):
                values.append(None)
                shown = "no label" if label is None else f"the label {label!r}"
                wrong.append(f"{place} has {shown}")
        count = f"{len(wrong)} labels are invalid: " if len(wrong) > 1 else ""
        more = f" and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        return values, f"{count}{', '.join(wrong[:10])}{more}."


def _number(label):
    if not math.isfinite(number := float(label)):
        raise ValueError
    return number


def read_labelled_texts(
    path: str | os.PathLike,
    label: str | int | None = None,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool | None = None,
    encoding: str | None = None,
) -> LabelledTexts:
    """Read labelled texts.

    Labels lose invisible characters, and rows that repeat the header are skipped, with
    a warning. A missing label is `None`.

    Args:
        path: path of a `.tsv` or `.txt` file (tabs), a `.csv` file (commas or, with a
            warning, semicolons, tabs or bars; double quotes), a `.jsonl` or `.json`
            file (one JSON object per line, or a list of objects), an `.xlsx` or a
            `.parquet` file, also compressed. The header line is optional.
        label, text, text_b: optional, the names of the columns or their numbers
            from 1. By default they are found by their names in the header (`label`,
            `text`, `text_a`, `text_b`, `sentence1`, ...) or, without a header, by
            their content.
        pairs: optional bool. Whether to expect pairs of texts or single texts.
        encoding: optional string, such as `"big5"`. By default UTF-8 or, with a
            warning, the likeliest by the first megabyte.

    Returns:
        A `LabelledTexts`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is empty or has another encoding, rows of different
            lengths or no such columns, or if it has pairs where single texts are
            expected.

    Example:
    ```python
    train = albert_tf.data.read_labelled_texts("train.tsv")
    labels = albert_tf.data.class_names(train.labels)
    classifier.fit(train.x, train.labels)
    ```
    """
    table = Table(path, encoding=encoding, label=label, text=text, text_b=text_b)
    table.find("label", "text")
    is_pair = "text_b" in table.columns
    if pairs not in (None, is_pair):
        kinds = ("single texts", "pairs of texts")
        raise AlbertError(
            f"{path} has {kinds[is_pair]}. Expected {kinds[not is_pair]}. Name the "
            "columns to read with `text=` and `text_b=`."
        )
    first, *others = table.cells("text", *["text_b"] * is_pair)
    labels = clean_labels(table.labels(), table.places)
    x = (first, *others) if others else first
    return LabelledTexts(x, labels, table.places)


def read_texts(
    path: str | os.PathLike,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool = False,
    encoding: str | None = None,
) -> list[str] | tuple[list[str], list[str]]:
    """Read texts or pairs of texts without labels.

    Args:
        path: as in `read_labelled_texts`. A file with one column needs no header.
        text, text_b: as in `read_labelled_texts`. Other columns are ignored.
        pairs: bool. Whether each example is a pair of texts.
        encoding: optional string, as in `read_labelled_texts`.

    Returns:
        A list of strings, or a tuple of two lists for pairs.

    Raises:
        FileNotFoundError, AlbertError: as `read_labelled_texts`.

    Example:
    ```python
    classifier.predict(albert_tf.data.read_texts("reviews.csv"))
    ```
    """
    return Table(path, encoding=encoding, text=text, text_b=text_b).texts(pairs)


class MissingColumnError(AlbertError):
    """A file lacks a column that was named."""


class Table:
    """The rows of a file, and the columns that are given or named in its header.

    Attributes:
        header: list of distinct strings; without a header line, the numbers of the
            columns.
        places, rows: the place of each row in the file, and its cells.
        columns: dict, the positions of the columns that were found.
        given: set of strings, the roles of the columns that were named.
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
        **given: str | int | None,
    ):
        self.path = path = pathlib.Path(path)
        rows = list(read_rows(path, encoding) if rows is None else rows)
        first = rows[0][1] if rows else []
        has_objects = isinstance(first, dict)
        self.header = [] if has_objects else first
        self._fill(rows)
        self._names = [str(cell).strip().lower() for cell in self.header]
        self.columns = named_columns(self._names)
        named = {role: str(name) for role, name in given.items() if name is not None}
        self.given = set(named)
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
                raise AlbertError(
                    f"{path} has one column, {first[0]!r}. If this is a header with "
                    "other separators than tabs, name the file .csv."
                )
            self.header = [str(i + 1) for i in range(len(first))]
        elif not has_objects:
            rows = without_headers(first, rows[1:])
            self.places, self.rows = [x for x, _ in rows], [x for _, x in rows]
            self.header = distinct_names(first)
            if self.header != first:
                warnings.warn(
                    f"{path} has columns of one name. They are called {self.header}.",
                    stacklevel=2,
                )
        if not self.rows:
            raise AlbertError(f"{path} has no examples. Its columns are {self.header}.")
        for role, name in named.items():
            if name in self.header:
                self.columns[role] = self.header.index(name)
            elif name.isdecimal() and 1 <= int(name) <= len(self.header):
                self.columns[role] = int(name) - 1
            else:
                raise MissingColumnError(
                    f"{path} has no column {name!r}. Its columns are {self.header}."
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
                raise AlbertError(
                    f"{place} has {len(row)} columns, but the first line has {width}: "
                    f"{row}{hint}"
                )

    def with_rows(self, rows: list[tuple[str, Any]]) -> Table:
        """Return a table of later rows of the same file, with the same columns."""
        table = copy.copy(self)
        if self.has_header and not self.objects:
            rows = without_headers(self._names, rows)
        table._fill(rows)
        return table

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
            for role in {*roles} & {*columns} - self.given:
                self._check_names(role, roles)
        elif {*roles} - {*columns}:
            columns |= find_by_content(str(self.path), cells, columns, roles, pairs)
            found = {x: i for x, i in columns.items() if x in (*roles, "text_b")}
            unused = {*range(len(cells))} - {*found.values()}
            order = sorted(found, key="label".__eq__)
            parts = [f"{role}: column {found[role] + 1}" for role in order]
            parts += [f"not used: column {i + 1}" for i in sorted(unused)]
            if len(cells) > 1:
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
        taken = {self.header[i] for x, i in self.columns.items() if x in roles}
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
        """Return the cells of each column as strings; of a list, its parts."""
        return tuple(
            [
                " ".join(map(str, x)) if isinstance(x, list) else str(x)
                for x in self.column(role)
            ]
            for role in roles
        )

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
                    f"{place} has spans instead of a label: {str(label)[:80]}. Read "
                    "them by --task token-classification (`read_tagged_texts`)."
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
                f"{self.path} has no {role} column. Its columns are {self.header}. "
                f"Name it {f'with `{role}=`, or ' * has_argument}in the header as one "
                f"of {', '.join(COLUMN_NAMES[role])}."
            )
        column = self.columns[role]
        for place, row in zip(self.places, self.rows, strict=True):
            if is_missing(row[column]) and not may_lack:
                raise AlbertError(f"{place} has no field {self.header[column]!r}.")
        return [row[column] for row in self.rows]


def table_blocks(
    path: str | os.PathLike,
    size: int,
    encoding: str | None = None,
    **given: Any,
) -> Iterator[Table]:
    """Read a file in tables of `size` rows. The first decides on header and columns.

    `given` are those of `Table`.
    """
    rows = read_rows(path, encoding)
    # With the header.
    table = Table(path, itertools.islice(rows, size + 1), **given)
    yield table
    while block := list(itertools.islice(rows, size)):
        yield table.with_rows(block)


def holds_lines(
    path: str | os.PathLike, encoding: str | None, fields: Sequence[str]
) -> bool:
    """Return whether each line of a file is an example, with tabs between its fields.

    Only a `.txt` file can be so. It is a table if it has a header or more columns than
    there are fields.
    """
    if endings(path)[0] != ".txt":
        return False
    lines = itertools.islice(stream_lines(path, encoding), HEAD_LINES)
    head = [line for line in lines if line.strip()] or [""]
    if is_json(head[0]) or named_columns(head[0].strip().lower().split("\t")):
        return False
    tabs = {line.count("\t") for line in head}
    return len(tabs) > 1 or max(tabs) < len(fields) or "choices" in fields
