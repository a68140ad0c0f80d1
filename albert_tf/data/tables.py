"""Reading labelled texts from tsv, csv and JSON lines files."""

import dataclasses
import math
import os
import pathlib
from collections.abc import Iterable, Sequence

from albert_tf.data.rows import LABEL_SEPARATOR, is_json_lines, read_rows
from albert_tf_lite.errors import AlbertError

# The columns that are found by themselves, the first of these that a header has.
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

# A column with more values than this may be text.
MOST_CLASSES = 1000


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts, or pairs of texts, and their labels.

    Attributes:
        x: list of strings, or the tuple of two lists for pairs.
        labels: list of strings.
        places: list of strings, where each example stands, such as "line 3 of a.tsv".
    """

    x: list[str] | tuple[list[str], list[str]]
    labels: list[str]
    places: list[str] = dataclasses.field(default_factory=list, compare=False)

    @property
    def pairs(self) -> bool:
        return isinstance(self.x, tuple)

    def class_ids(self, classes: Sequence[str]) -> list[int]:
        """The position of each label among the classes.

        Raises:
            AlbertError: if a label is empty, or not among them; it says which.
        """
        positions = {name: position for position, name in enumerate(classes)}
        for i, label in enumerate(self.labels):
            if not label:
                raise AlbertError(
                    f"The label of {self._place(i)} is empty. Give it one, or remove "
                    "the line."
                )
            if label not in positions:
                others = sum(x not in positions for x in self.labels[i + 1 :])
                more = f" ({others} more are not, either)" if others else ""
                raise AlbertError(
                    f"The label {label!r} of {self._place(i)} is not among the "
                    f"classes {list(classes)}{more}."
                )
        return [positions[label] for label in self.labels]

    def _place(self, i):
        return self.places[i] if self.places else f"example {i + 1}"

    def label_lists(self) -> list[list[str]]:
        """The labels of texts that may have several, "体育|娱乐", or none."""
        parts = (label.split(LABEL_SEPARATOR) for label in self.labels)
        return [[name.strip() for name in names if name.strip()] for names in parts]

    def scores(self) -> list[float]:
        """The labels as numbers.

        Raises:
            AlbertError: if one is no finite number.
        """
        return [_number(x, self._place(i)) for i, x in enumerate(self.labels)]


def _number(label, place):
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise AlbertError(
            f"The label {label!r} of {place} is no finite number. Say which "
            "column has the numbers with `label=`."
        )
    return number


def class_names(labels: Iterable[str]) -> list[str]:
    """The distinct labels in order: by number if all are numbers, else by text."""
    names = set(labels) - {""}
    whole = all(name.removeprefix("-").isdecimal() for name in names)
    return sorted(names, key=int if whole else str)


def read_labelled_texts(
    path: str | os.PathLike,
    label: str | int | None = None,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool | None = None,
) -> LabelledTexts:
    """Read labelled texts.

    Args:
        path: string: a `.tsv` or `.txt` file (tabs, no quoting), a `.csv` file
            (commas, double quotes), or a `.jsonl` file (a JSON object a line).
            UTF-8, or with a warning GB18030 or UTF-16; with a header line or without
            one.
        label, text, text_b: optional strings, the names of the columns, or
            their numbers counted from 1. By default they are found: by name in
            a header (`label`, `text`, `text_a`, `text_b`, `sentence1`, ...),
            without one by content.
        pairs: optional bool, whether pairs of texts are expected, or single texts.

    Returns:
        A `LabelledTexts`.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it is empty, in another encoding, of an unknown ending, has
            lines of different lengths, has no such columns, or has pairs where single
            texts are expected.
    """
    path = pathlib.Path(path)
    given = _given(label=label, text=text, text_b=text_b)
    header, numbers, rows, has_header = _table(path, given)
    columns = {role: _position(path, header, name) for role, name in given.items()}
    if has_header:
        _find_by_name(path, header, columns)
    else:
        _find_by_content(path, rows, columns)
    values = {role: [row[column] for row in rows] for role, column in columns.items()}
    x = values["text"]
    if "text_b" in values:
        x = (x, values["text_b"])
    if pairs not in (None, "text_b" in values):
        kinds = ("pairs of texts", "single texts")
        raise AlbertError(
            f"{path} has {kinds[pairs]} where {kinds[not pairs]} are expected. Say "
            "which columns to read with `text=` and `text_b=`."
        )
    places = [f"line {number} of {path}" for number in numbers]
    return LabelledTexts(x, [value.strip() for value in values["label"]], places)


def read_texts(
    path: str | os.PathLike,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool = False,
) -> list[str] | tuple[list[str], list[str]]:
    """Read texts, or pairs of texts, without labels.

    Args:
        path: as for `read_labelled_texts`; a file with one column needs no header.
        text, text_b: as for `read_labelled_texts`. Other columns are passed over.
        pairs: bool, whether an example is a pair of texts.

    Returns:
        List of strings, or the tuple of two lists for pairs.

    Raises:
        FileNotFoundError, ValueError: as `read_labelled_texts`.
    """
    path = pathlib.Path(path)
    given = _given(text=text, text_b=text_b)
    header, _, rows, has_header = _table(path, given)
    columns = {role: _position(path, header, name) for role, name in given.items()}
    roles = ("text", "text_b") if pairs else ("text",)
    for place, role in enumerate(roles):
        names = COLUMN_NAMES[role]
        found = [i for i, name in enumerate(header) if name.strip().lower() in names]
        if has_header and found:
            columns.setdefault(role, found[0])
        elif len(header) == len(roles):
            columns.setdefault(role, place)
        if role not in columns:
            raise AlbertError(
                f"{path} has {len(header)} columns, {header}, and none is found to be "
                f"the {role}. Say which it is with `{role}=`."
            )
    x = tuple([row[columns[role]] for row in rows] for role in roles)
    return x if pairs else x[0]


def _given(**columns):
    return {role: str(name) for role, name in columns.items() if name is not None}


def _table(path, given):
    """The header, line numbers and rows of a file, and whether the header is its own.

    A file without one has the numbers of the columns, from 1 on.
    """
    numbers, rows = read_rows(path)
    known = {name for names in COLUMN_NAMES.values() for name in names}
    has_header = (
        is_json_lines(path)
        or not all(name.isdecimal() for name in given.values())
        or any(cell.strip().lower() in known for cell in rows[0])
    )
    if has_header:
        header, *rows = rows
        numbers = numbers[1:]
    else:
        header = [str(number) for number in range(1, len(rows[0]) + 1)]
    if not rows:
        raise AlbertError(f"{path} has a header line and no examples below it.")
    return header, numbers, rows, has_header


def _position(path, header, name):
    if name in header:
        return header.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(header):
        return int(name) - 1
    raise AlbertError(f"{path} has no column {name!r}. Its columns are {header}.")


def _find_by_name(path, header, columns):
    """Add the columns that are not given, by their names."""
    lower = [name.strip().lower() for name in header]
    for role, names in COLUMN_NAMES.items():
        found = [lower.index(name) for name in names if name in lower]
        if found:
            columns.setdefault(role, found[0])
        elif role not in columns and role != "text_b":
            raise AlbertError(
                f"{path} has no {role} column. Its columns are {header}. Say which "
                f"it is with `{role}=`. (Found by itself: {names})"
            )


def _find_by_content(path, rows, columns):
    """Add the columns that are not given: the label has the fewest values."""
    free = [i for i in range(len(rows[0])) if i not in columns.values()]
    if "label" not in columns:
        columns["label"] = _label_column(path, rows, free)
        free.remove(columns["label"])
    if "text" not in columns:
        if not free or len(free) > 2:
            raise AlbertError(
                f"{path} has no header and {len(free)} columns that could be text, "
                f"such as {rows[0]}. Say which is with `text=` (a number)."
            )
        columns["text"], *rest = free
        if rest:
            columns.setdefault("text_b", rest[0])


def _label_column(path, rows, columns):
    """The column with the fewest values; of those with as many, the shorter ones."""

    def size(column):
        cells = [row[column] for row in rows]
        return len(set(cells)), sum(map(len, cells))

    most = max(1, min(MOST_CLASSES, len(rows) - 1))
    found = [column for column in columns if size(column)[0] <= most]
    if not found:
        raise AlbertError(
            f"{path} has no label column: in each column every line is different "
            f"(first line: {rows[0]}). Say which it is with `label=`, or give "
            "the file a header."
        )
    return min(found, key=size)
