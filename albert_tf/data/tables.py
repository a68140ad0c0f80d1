"""Read labelled texts from tsv, csv and JSON lines files."""

from __future__ import annotations

import csv
import dataclasses
import math
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from albert_tf.data.reading import numbered_lines, parse_json, read_lines
from albert_tf_lite.errors import AlbertError

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
}
# Separates the labels of a text that has several.
LABEL_SEPARATOR = "|"


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts or pairs of texts, and their labels.

    Attributes:
        x: list of strings, or a tuple of two lists for pairs.
        labels: list of strings.
        places: list of strings, the place of each example in its file, such as
            "Line 3 of a.tsv".
    """

    x: list[str] | tuple[list[str], list[str]]
    labels: list[str]
    places: list[str] = dataclasses.field(default_factory=list, compare=False)

    @property
    def pairs(self) -> bool:
        """Return whether each example is a pair of texts."""
        return isinstance(self.x, tuple)

    def class_ids(self, classes: Sequence[str]) -> list[int]:
        """Return the position of each label; raise if it is not one of the classes."""
        positions = {name: position for position, name in enumerate(classes)}
        for i, label in enumerate(self.labels):
            if label not in positions:
                raise AlbertError(
                    f"{self._place(i)} has the label {label!r}. Expected one of the "
                    f"classes {list(classes)}."
                )
        return [positions[label] for label in self.labels]

    def label_lists(self) -> list[list[str]]:
        """Return the list of labels of each text; "体育|娱乐" has two, "" none."""
        parts = (label.split(LABEL_SEPARATOR) for label in self.labels)
        return [[name.strip() for name in names if name.strip()] for names in parts]

    def scores(self) -> list[float]:
        """Return the labels as numbers; raise if one is not a finite number."""
        scores = []
        for i, label in enumerate(self.labels):
            try:
                score = float(label)
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                raise AlbertError(
                    f"{self._place(i)} has the label {label!r}. Expected a number. "
                    "Name the column of the numbers with `label=`."
                )
            scores.append(score)
        return scores

    def _place(self, i):
        return self.places[i] if self.places else f"Example {i + 1}"


def class_names(labels: Iterable[str]) -> list[str]:
    """Return the distinct labels, sorted by number if all are integers, else by text.

    Empty labels are left out.
    """
    names = set(labels) - {""}
    are_integers = all(name.removeprefix("-").isdecimal() for name in names)
    return sorted(names, key=int if are_integers else str)


def read_labelled_texts(
    path: str | os.PathLike,
    label: str | int | None = None,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool | None = None,
) -> LabelledTexts:
    """Read labelled texts.

    Args:
        path: path of a `.tsv` or `.txt` file (tabs, no quoting), a `.csv` file
            (commas, double quotes), or a `.jsonl` or `.json` file (one JSON object
            per line). UTF-8 or, with a warning, GB18030 or UTF-16. The header line is
            optional.
        label, text, text_b: optional, the names of the columns or their numbers
            from 1. By default they are found by their names in the header (`label`,
            `text`, `text_a`, `text_b`, `sentence1`, ...) or, without a header, by
            their content.
        pairs: optional bool. Whether to expect pairs of texts or single texts.

    Returns:
        A `LabelledTexts`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is empty or has another encoding, an unknown ending,
            rows of different lengths or no such columns, or if it has pairs where
            single texts are expected.

    Example:
    ```python
    train = albert_tf.data.read_labelled_texts("train.tsv")
    labels = albert_tf.data.class_names(train.labels)
    classifier.fit(train.x, train.class_ids(labels))
    ```
    """
    table = _read_table(path, {"label": label, "text": text, "text_b": text_b})
    if not table.has_header:
        _find_by_content(table)
    labels, first = table.column("label"), table.column("text")
    is_pair = "text_b" in table.columns
    if pairs not in (None, is_pair):
        kinds = ("single texts", "pairs of texts")
        raise AlbertError(
            f"{path} has {kinds[is_pair]}. Expected {kinds[not is_pair]}. Name the "
            "columns to read with `text=` and `text_b=`."
        )
    x = (first, table.column("text_b")) if is_pair else first
    places = [place for place, _ in table.rows]
    return LabelledTexts(x, [value.strip() for value in labels], places)


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
    table = _read_table(path, {"text": text, "text_b": text_b})
    roles = ("text", "text_b")[: 1 + pairs]
    if len(table.header) == len(roles):
        for position, role in enumerate(roles):
            table.columns.setdefault(role, position)
    x = tuple(map(table.column, roles))
    return x if pairs else x[0]


class _Table(NamedTuple):
    path: pathlib.Path
    header: list[str]  # Without a header line, the numbers of the columns.
    rows: list[tuple[str, list[str]]]  # Place and cells.
    columns: dict[str, int]
    has_header: bool

    def column(self, role):
        if role not in self.columns:
            raise AlbertError(
                f"{self.path} has no {role} column. Its columns are {self.header}. "
                f"Name it with `{role}=`. (Recognized names: {COLUMN_NAMES[role]})"
            )
        return [cells[self.columns[role]] for _, cells in self.rows]


def _read_table(path, given):
    """Read a file and find its columns that are given or named in its header."""
    path = pathlib.Path(path)
    rows = _read_rows(path)
    given = {role: str(name) for role, name in given.items() if name is not None}
    header = [cell.strip().lower() for cell in rows[0][1]]
    found = {
        role: header.index(name)
        for role, names in COLUMN_NAMES.items()
        for name in reversed(names)
        if name in header
    }
    has_header = (
        path.suffix.lower() in _JSON_ENDINGS
        or bool(found)
        or not all(name.isdecimal() for name in given.values())
    )
    if has_header:
        (_, header), *rows = rows
    else:
        header = [str(i + 1) for i in range(len(header))]
    if not rows:
        raise AlbertError(f"{path} has a header line but no examples.")
    for role, name in given.items():
        if name in header:
            found[role] = header.index(name)
        elif name.isdecimal() and 1 <= int(name) <= len(header):
            found[role] = int(name) - 1
        else:
            raise AlbertError(
                f"{path} has no column {name!r}. Its columns are {header}."
            )
    return _Table(path, header, rows, found, has_header)


def _find_by_content(table):
    """Take the column with the fewest values as label, the others as texts."""
    columns = table.columns
    free = [i for i in range(len(table.header)) if i not in columns.values()]

    def size(column):
        cells = [cells[column] for _, cells in table.rows]
        return len(set(cells)), sum(map(len, cells))

    if "label" not in columns:
        if not free:
            raise AlbertError(f"{table.path} has no column beside the named ones.")
        columns["label"] = min(free, key=size)
        free.remove(columns["label"])
        if size(columns["label"])[0] == len(table.rows) > 1:
            raise AlbertError(
                f"{table.path} has no label column: in each column every line is "
                "different. Number it with `label=`, or add a header."
            )
    if "text" not in columns:
        if len(free) not in (1, 2):
            raise AlbertError(
                f"{table.path} has no header and {len(free)} columns that may be text. "
                "Number the text column with `text=`."
            )
        columns["text"] = free[0]
        if len(free) == 2:
            columns.setdefault("text_b", free[1])


def _read_rows(path):
    """Return the place and the cells of each row, the header included."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise AlbertError(
            f"{path} has an unknown ending. Expected one of {', '.join(_READERS)} "
            "(.json with one JSON object per line)."
        )
    rows = reader(path)
    if not rows:
        raise AlbertError(f"{path} is empty. Expected one label and text per line.")
    width = len(rows[0][1])
    for place, row in rows:
        if len(row) != width:
            raise AlbertError(
                f"{place} has {len(row)} columns, but the first line has {width}: {row}"
            )
    return rows


def _read_tsv(path):
    return [(place, line.split("\t")) for place, line in numbered_lines(path)]


def _read_csv(path):
    reader = csv.reader((line + "\n" for line in read_lines(path)), strict=True)
    try:
        return [(f"Line {reader.line_num} of {path}", row) for row in reader if row]
    except csv.Error as error:
        place = f"Line {reader.line_num} of {path}"
        raise AlbertError(f"{place} is not CSV: {error}.") from error


def _read_jsonl(path):
    rows = []
    for place, line in numbered_lines(path):
        record = parse_json(line, place)
        if not isinstance(record, dict):
            raise AlbertError(
                f'{place} should be a JSON object such as {{"label": "1", "text": '
                f'"..."}}. Found: {line[:80]}'
            )
        rows = rows or [(place, list(record))]
        missing = [name for name in rows[0][1] if record.get(name) is None]
        if missing:
            raise AlbertError(f"{place} lacks {missing}: {line[:80]}")
        rows.append((place, [_cell(record[name]) for name in rows[0][1]]))
    return rows


def _cell(value):
    is_list = isinstance(value, list)
    return LABEL_SEPARATOR.join(map(str, value)) if is_list else str(value)


_JSON_ENDINGS = (".jsonl", ".json")
_READERS = {
    **dict.fromkeys((".tsv", ".txt"), _read_tsv),
    ".csv": _read_csv,
    **dict.fromkeys(_JSON_ENDINGS, _read_jsonl),
}
