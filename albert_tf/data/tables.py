"""Read labelled texts from tsv, csv, JSON lines and Parquet files."""

from __future__ import annotations

import contextlib
import copy
import csv
import dataclasses
import functools
import itertools
import math
import os
import pathlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from albert_tf.data.labels import (
    LABEL_SEPARATOR,
    Label,
    clean_labels,
    label_lists,
    without_headers,
)
from albert_tf.data.reading import (
    HEAD_BYTES,
    encoding_of,
    endings,
    numbered_lines,
    read_json,
    stream_lines,
)
from albert_tf_lite.errors import AlbertError, import_extra
from albert_tf_lite.inputs import is_missing

# Names of columns in a header. The first name that a header has is taken.
COLUMN_NAMES = {
    "label": (
        *("label", "labels", "class", "category", "sentiment", "target"),
        *("score", "similarity", "rating", "标签", "标注", "类别", "分类", "类型"),
        *("情感", "情感倾向", "情绪", "倾向", "评分", "打分", "分数", "相似度"),
    ),
    "text": (
        *("text", "text_a", "sentence", "sentence1", "sentence_a", "review"),
        *("content", "query", "question1", "title", "comment", "文本", "文本1"),
        *("内容", "正文", "评论", "评论内容", "评价", "评价内容", "句子", "句子1"),
        *("问题1", "标题", "文本内容"),
    ),
    "text_b": (
        *("text_b", "sentence2", "sentence_b", "question2"),
        *("文本2", "句子2", "问题2"),
    ),
    "original": ("original_text", "source"),
    "correct": ("correct_text", "target"),
    "article": ("article", "text", "content", "abst"),
    "summary": ("summary", "summarization", "title"),
}
# The first rows of a stream determine its separator.
_HEAD_ROWS = 1000


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
) -> LabelledTexts:
    """Read labelled texts.

    Labels lose invisible characters, and rows that repeat the header are skipped, with
    a warning. A missing label is `None`.

    Args:
        path: path of a `.tsv` or `.txt` file (tabs, no quoting), a `.csv` file
            (commas or, with a warning, semicolons or tabs; double quotes), a
            `.jsonl` or `.json` file (one JSON object per line, or a list of objects),
            or a `.parquet` file. UTF-8 or, with a warning, GB18030 or UTF-16, also
            compressed (`.gz`, `.zst`). The header line is optional.
        label, text, text_b: optional, the names of the columns or their numbers
            from 1. By default they are found by their names in the header (`label`,
            `text`, `text_a`, `text_b`, `sentence1`, ...) or, without a header, by
            their content.
        pairs: optional bool. Whether to expect pairs of texts or single texts.

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
    table = Table(path, label=label, text=text, text_b=text_b)
    if not table.has_header:
        table.find_by_content()
    is_pair = "text_b" in table.columns
    if pairs not in (None, is_pair):
        kinds = ("single texts", "pairs of texts")
        raise AlbertError(
            f"{path} has {kinds[is_pair]}. Expected {kinds[not is_pair]}. Name the "
            "columns to read with `text=` and `text_b=`."
        )
    first, *others = table.cells("text", *["text_b"] * is_pair)
    labels = clean_labels(table.column("label", may_lack=True), table.places)
    x = (first, *others) if others else first
    return LabelledTexts(x, labels, table.places)


def read_texts(
    path: str | os.PathLike,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool = False,
) -> list[str] | tuple[list[str], list[str]]:
    """Read texts or pairs of texts without labels.

    Args:
        path: as in `read_labelled_texts`. A file with one column needs no header.
        text, text_b: as in `read_labelled_texts`. Other columns are ignored.
        pairs: bool. Whether each example is a pair of texts.

    Returns:
        A list of strings, or a tuple of two lists for pairs.

    Raises:
        FileNotFoundError, AlbertError: as `read_labelled_texts`.

    Example:
    ```python
    classifier.predict(albert_tf.data.read_texts("reviews.csv"))
    ```
    """
    return Table(path, text=text, text_b=text_b).texts(pairs)


class MissingColumnError(AlbertError):
    """A file lacks a column that was named."""


class Table:
    """The rows of a file, and the columns that are given or named in its header.

    Attributes:
        header: list of strings; without a header line, the numbers of the columns.
        places, rows: the place of each row in the file, and its cells.
        columns: dict, the positions of the columns that were found.
        objects: the rows as dicts, if the file has such; otherwise an empty list.
    """

    places: list[str]
    rows: list[list]

    def __init__(
        self,
        path: str | os.PathLike,
        rows: Iterable[tuple[str, Any]] | None = None,
        **given: str | int | None,
    ):
        self.path = path = pathlib.Path(path)
        rows = list(row_reader(path)() if rows is None else rows)
        first = rows[0][1] if rows else []
        has_objects = isinstance(first, dict)
        self.header = [] if has_objects else first
        self._fill(rows)
        header = [cell.strip().lower() for cell in self.header]
        self.columns = {
            role: header.index(name)
            for role, names in COLUMN_NAMES.items()
            for name in reversed(names)
            if name in header
        }
        named = {role: str(name) for role, name in given.items() if name is not None}
        self.has_header = (
            has_objects
            or bool(self.columns)
            or not all(name.isdecimal() for name in named.values())
        )
        if not self.has_header:
            self.header = [str(i + 1) for i in range(len(first))]
        elif not has_objects:
            rows = without_headers(self.header, rows[1:])
            self.places, self.rows = [x for x, _ in rows], [x for _, x in rows]
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
        self.objects = [row for _, row in rows if isinstance(row, dict)]
        if self.objects:
            # Columns keep their positions.
            names = dict.fromkeys(itertools.chain(self.header, *self.objects))
            self.header = list(names)
            rows = [(place, list(map(x.get, names))) for place, x in rows]
        for place, row in rows:
            if len(row) != len(self.header):
                hint, is_csv = "", endings(self.path)[0] == ".csv"
                if not is_csv and any(x.startswith('"') for x in row):
                    hint = ". Name a file with quoted cells .csv; tabs are found there"
                raise AlbertError(
                    f"{place} has {len(row)} columns, but the first line has "
                    f"{len(self.header)}: {row}{hint}"
                )
        self.places, self.rows = [x for x, _ in rows], [x for _, x in rows]

    def with_rows(self, rows: list[tuple[str, Any]]) -> Table:
        """Return a table of later rows of the same file, with the same columns."""
        table = copy.copy(self)
        if self.has_header and not self.objects:
            rows = without_headers(self.header, rows)
        table._fill(rows)
        return table

    def cells(self, *roles: str, in_order: bool = False) -> Any:
        """Return the cells of each column; `in_order`, columns need no names."""
        if in_order and not self.columns and len(self.header) == len(roles):
            self.columns = dict(zip(roles, range(len(roles)), strict=True))
        return tuple(
            [
                LABEL_SEPARATOR.join(map(str, x)) if isinstance(x, list) else str(x)
                for x in self.column(role)
            ]
            for role in roles
        )

    def texts(self, pairs: bool = False) -> Any:
        """Return the texts, or a tuple of two lists for pairs."""
        if pairs:
            return self.cells("text", "text_b", in_order=True)
        return self.cells("text", in_order=True)[0]

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

    def find_by_content(self) -> None:
        """Take the column with the fewest values as label, the others as texts."""
        columns = self.columns
        free = [i for i in range(len(self.header)) if i not in columns.values()]
        cells = list(zip(*self.rows, strict=True))
        if "label" not in columns and free:
            label = min(free, key=lambda i: (len({*cells[i]}), sum(map(len, cells[i]))))
            if len(self.header) == 1:
                raise AlbertError(
                    f"{self.path} has one column. Expected a label and a text, "
                    "separated by tabs, in .csv files by commas."
                )
            if len({*cells[label]}) == len(self.rows) > 1:
                raise AlbertError(
                    f"{self.path} has no label column: in each column every line is "
                    "different. Number it with `label=`, or add a header."
                )
            columns["label"] = label
            free.remove(label)
        if "text" not in columns:
            if len(free) not in (1, 2):
                raise AlbertError(
                    f"{self.path} has no header and {len(free)} columns that may be "
                    "text. Number the text column with `text=`."
                )
            columns |= dict(zip(("text", "text_b"), free, strict=False)) | columns


# === Readers: the place and the cells of each row, the header included ===


def table_blocks(
    path: str | os.PathLike, size: int, **given: str | int | None
) -> Callable[[], Iterator[Table]]:
    """Return a function that reads a file in tables of `size` rows.

    The first rows decide on encoding, separator, header and columns. `given` are those
    of `Table`. Each call reads the file from its start.
    """
    read_rows = row_reader(path, is_stream=True)

    def blocks() -> Iterator[Table]:
        rows = read_rows()
        # With the header.
        table = Table(path, itertools.islice(rows, size + 1), **given)
        yield table
        while block := list(itertools.islice(rows, size)):
            yield table.with_rows(block)

    return blocks


def row_reader(
    path: str | os.PathLike, is_stream: bool = False
) -> Callable[[], Iterator[tuple[str, Any]]]:
    """Return a function that yields place and cells, or place and dict, of each row."""
    kind = endings(path)[0]
    if kind == ".parquet":
        return functools.partial(_parquet_rows, path)
    encoding = encoding_of(path, HEAD_BYTES if is_stream else None)
    if kind in (".json", ".jsonl"):
        return functools.partial(_objects, path, encoding)
    if kind == ".csv":
        delimiter = _delimiter_of(path, encoding, _HEAD_ROWS if is_stream else None)
        return functools.partial(_split_csv, path, encoding, delimiter)
    return lambda: (
        (place, line.split("\t")) for place, line in numbered_lines(path, encoding)
    )


def _delimiter_of(path, encoding, num_rows):
    # Excel reads such a first line.
    if named := _NAMED_DELIMITER.match(next(stream_lines(path, encoding), "")):
        return named[1]
    # Excel writes semicolons where numbers have decimal commas.
    for delimiter in (",", ";", "\t"):
        rows = itertools.islice(_split_csv(path, encoding, delimiter), num_rows)
        with contextlib.suppress(AlbertError):
            widths = {len(row) for _, row in rows}
            if len(widths) == 1 and widths != {1}:
                if delimiter != ",":
                    message = f"{path} is separated by {delimiter!r}, not by commas."
                    warnings.warn(f"{message} Read as such.", stacklevel=2)
                return delimiter
    return ","


_NAMED_DELIMITER = re.compile('^"?sep=(.)"?$')


def _split_csv(path, encoding, delimiter):
    lines = stream_lines(path, encoding)
    first = _NAMED_DELIMITER.sub("", next(lines, ""))
    lines = (f"{line}\n" for line in itertools.chain([first], lines))
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    try:
        for row in reader:
            if row:
                yield f"Line {reader.line_num} of {path}", row
    except csv.Error as error:
        line = reader.line_num
        raise AlbertError(f"Line {line} of {path} is not CSV: {error}.") from error


def _objects(path, encoding):
    for place, record in read_json(path, encoding):
        if not isinstance(record, dict):
            raise AlbertError(
                f'{place} should be a JSON object such as {{"label": "1", "text": '
                f'"..."}}. Found: {str(record)[:80]}'
            )
        yield place, record


def _parquet_rows(path):
    arrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            batches = file.iter_batches(batch_size=_HEAD_ROWS)
            rows = (row for batch in batches for row in batch.to_pylist())
            for i, row in enumerate(rows, 1):
                yield f"Row {i} of {path}", row
    except arrow.ArrowException as error:
        raise AlbertError(f"{path} cannot be read as Parquet: {error}.") from error
