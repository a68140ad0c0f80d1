"""Reading labelled texts from tsv, csv and JSON lines files."""

import csv
import dataclasses
import json
import os
import pathlib
from collections.abc import Iterable, Sequence

LABEL_NAMES = (
    *("label", "labels", "class", "category", "sentiment", "target"),
    *("标签", "类别", "分类"),
)
TEXT_NAMES = (
    "text",
    "text_a",
    "sentence",
    "sentence1",
    "sentence_a",
    "review",
    "content",
    "query",
    "question1",
    "title",
    "文本",
    "内容",
    "评论",
)
TEXT_B_NAMES = ("text_b", "sentence2", "sentence_b", "question2")

# Beside a label column that has so few values; more, and it may be text.
MOST_CLASSES = 1000


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts, or pairs of texts, and their labels.

    Attributes:
        x: list of strings, or the tuple of two lists for pairs.
        labels: list of strings.
    """

    x: list[str] | tuple[list[str], list[str]]
    labels: list[str]

    @property
    def pairs(self) -> bool:
        return isinstance(self.x, tuple)

    def class_ids(self, classes: Sequence[str]) -> list[int]:
        """The position of each label among the classes.

        Raises:
            ValueError: if a label is not among them.
        """
        positions = {name: position for position, name in enumerate(classes)}
        unknown = sorted(set(self.labels) - set(positions))
        if unknown:
            raise ValueError(
                f"The labels {unknown[:5]} are not among the classes {list(classes)}."
            )
        return [positions[label] for label in self.labels]


def class_names(labels: Iterable[str]) -> list[str]:
    """The distinct labels in order: by number if all are numbers, else by text."""
    names = set(labels)
    whole = all(name.removeprefix("-").isdecimal() for name in names)
    return sorted(names, key=int if whole else str)


def read_labelled_texts(
    path: str | os.PathLike,
    label: str | int | None = None,
    text: str | int | None = None,
    text_b: str | int | None = None,
) -> LabelledTexts:
    """Read labelled texts.

    Args:
        path: string: a `.tsv` or `.txt` file (tabs, no quoting), a `.csv` file
            (commas, double quotes), or a `.jsonl` file (a JSON object a line).
            UTF-8, with a header line or without one.
        label, text, text_b: optional strings, the names of the columns, or
            their numbers counted from 1. By default they are found: by name in
            a header (`label`, `text`, `text_a`, `text_b`, `sentence1`, ...),
            without one by content.

    Returns:
        A `LabelledTexts`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is empty, not UTF-8, of an unknown ending, has lines of
            different lengths, or has no such columns.
    """
    path = pathlib.Path(path)
    header, rows = _read_table(path)
    wanted = {"label": label, "text": text, "text_b": text_b}
    if header is None and any(_is_name(name) for name in wanted.values()):
        header, rows = rows[0], rows[1:]
    known = (*LABEL_NAMES, *TEXT_NAMES, *TEXT_B_NAMES)
    if header is None and any(cell.strip().lower() in known for cell in rows[0]):
        header, rows = rows[0], rows[1:]
    if not rows:
        raise ValueError(f"{path} has a header line and no examples below it.")
    columns = (
        _columns_by_content(path, rows, wanted)
        if header is None
        else _columns_by_name(path, header, wanted)
    )
    values = {name: [row[column] for row in rows] for name, column in columns.items()}
    x = values["text"]
    if "text_b" in values:
        x = (x, values["text_b"])
    return LabelledTexts(x, [value.strip() for value in values["label"]])


def _read_table(path):
    """The header, if the format has one always, and the rows of cells."""
    readers = {
        ".tsv": _read_tsv,
        ".txt": _read_tsv,
        ".csv": _read_csv,
        ".jsonl": _read_jsonl,
        ".json": _read_jsonl,
    }
    if path.suffix.lower() not in readers:
        raise ValueError(
            f"{path} has an unknown ending. Known: {', '.join(readers)} "
            "(.json holds a JSON object a line)."
        )
    header, rows = readers[path.suffix.lower()](path, _read_lines(path))
    if not rows:
        raise ValueError(f"{path} is empty. Expected a label and a text a line.")
    width = len(header or rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise ValueError(
                f"Line {number} of {path} has {len(row)} columns, the first line "
                f"has {width}: {row}"
            )
    return header, [row for _, row in rows]


def _read_lines(path):
    """The lines of a UTF-8 file, each with its end, for the csv reader."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}. "
            "If it is GBK or GB18030, convert it: iconv -f GB18030 -t UTF-8."
        ) from error
    # Not splitlines, which also cuts at characters that texts contain.
    return text.replace("\r\n", "\n").split("\n")


def _read_tsv(path, lines):
    rows = enumerate(lines, start=1)
    return None, [(number, line.split("\t")) for number, line in rows if line.strip()]


def _read_csv(path, lines):
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    try:
        return None, [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise ValueError(
            f"Line {reader.line_num} of {path} is not CSV: {error}."
        ) from error


def _read_jsonl(path, lines):
    rows, header = [], None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"Line {number} of {path} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise ValueError(
                f"Line {number} of {path} should be a JSON object such as "
                f'{{"label": "1", "text": "..."}}. Found: {line[:80]}'
            )
        header = header or list(record)
        missing = [name for name in header if name not in record]
        if missing:
            raise ValueError(
                f"Line {number} of {path} lacks the fields {missing} of the first."
            )
        empty = [name for name in header if record[name] is None]
        if empty:
            raise ValueError(f"Line {number} of {path} has null for {empty}.")
        rows.append((number, [str(record[name]) for name in header]))
    return header, rows


def _is_name(column):
    return column is not None and not str(column).isdecimal()


def _columns_by_name(path, header, wanted):
    lower = [name.strip().lower() for name in header]
    known = {"label": LABEL_NAMES, "text": TEXT_NAMES, "text_b": TEXT_B_NAMES}
    found = {}
    for role, name in wanted.items():
        if name is not None:
            found[role] = _given_column(path, header, name)
            continue
        matches = [lower.index(option) for option in known[role] if option in lower]
        if matches:
            found[role] = matches[0]
        elif role != "text_b":
            raise ValueError(
                f"{path} has no {role} column. Its columns are {header}. Say which "
                f"it is with --{role}-column. (Found by itself: {known[role]})"
            )
    return found


def _given_column(path, header, name):
    if name in header:
        return header.index(name)
    if str(name).isdecimal() and 1 <= int(name) <= len(header):
        return int(name) - 1
    raise ValueError(f"{path} has no column {name!r}. Its columns are {list(header)}.")


def _columns_by_content(path, rows, wanted):
    """Columns of a file without header: the label has few values, texts are long."""
    numbers = [str(number) for number in range(1, len(rows[0]) + 1)]
    given = {
        role: _given_column(path, numbers, str(name))
        for role, name in wanted.items()
        if name is not None
    }
    free = [column for column in range(len(numbers)) if column not in given.values()]
    if "label" not in given:
        given["label"] = _label_column(path, rows, free)
        free.remove(given["label"])
    if "text" not in given:
        if not free or len(free) > 2:
            raise ValueError(
                f"{path} has no header and {len(free)} columns that could be text, "
                f"such as {rows[0]}. Say which is with --text-column (a number)."
            )
        given["text"], *rest = free
        if rest and "text_b" not in given:
            given["text_b"] = rest[0]
    return given


def _label_column(path, rows, columns):
    distinct = {column: len({row[column] for row in rows}) for column in columns}
    # Of columns with as many values, the one with the shorter ones.
    best = min(
        columns,
        key=lambda column: (distinct[column], sum(len(row[column]) for row in rows)),
        default=None,
    )
    repeats = best is not None and (distinct[best] < len(rows) or len(rows) == 1)
    if not repeats or distinct[best] > MOST_CLASSES:
        raise ValueError(
            f"{path} has no label column: in each column every line is different "
            f"(first line: {rows[0]}). Say which it is with --label-column, or give "
            "the file a header."
        )
    return best
