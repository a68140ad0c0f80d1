"""Reading texts with entities: columns of tags, and what annotation tools export."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from albert_tf.data.tags import Span, check_spans, split_tag, tags_to_spans
from albert_tf.files import decode_utf8

# Characters from here on are written without spaces between words.
_FIRST_UNSPACED = "\u2e80"


@dataclasses.dataclass(frozen=True)
class TaggedTexts:
    """Texts and their entities.

    Attributes:
        x: list of strings.
        spans: a list of (start, end, label) for each text, in characters.
        skipped: int, spans that were left out, with `skip_wrong=True`.
    """

    x: list[str]
    spans: list[list[Span]]
    skipped: int = 0

    @property
    def labels(self) -> list[str]:
        """The labels there are, in the order of the alphabet."""
        return sorted({label for row in self.spans for _, _, label in row})


@dataclasses.dataclass(frozen=True)
class _Record:
    where: str  # Such as "Line 3".
    text: str
    spans: list


def read_tagged_texts(
    path: str | os.PathLike,
    form: str | None = None,
    separator: str | None = None,
    joiner: str | None = None,
    skip_wrong: bool = False,
) -> TaggedTexts:
    """Read texts with entities.

    | form | a file of it |
    |---|---|
    | `"columns"` | a token and its tag a line, an empty line between sentences, as of CoNLL, MSRA, People's Daily; tags of BIO, BIOES, BMES, BILOU, IO |
    | `"slashes"` | a sentence a line, `中共中央/nt 致/o` |
    | `"cluener"` | JSON lines, `{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}` |
    | `"doccano"` | JSON lines, `{"text": "...", "label": [[0, 2, "PER"]]}`, or with `entities` |
    | `"label_studio"` | a JSON list of tasks, the whole export or JSON-MIN |

    Args:
        path: string, a file in UTF-8.
        form: optional string, as above. By default found from the content.
        separator: optional string between columns. By default any white space. Of
            several columns the first is the token and the last the tag.
        joiner: optional string between the tokens of columns. By default nothing
            for characters and for Chinese, else a space.
        skip_wrong: bool. Leave out and count spans that are outside the text or
            overlap one before them, instead of raising an error.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is empty, not UTF-8, or not of the form, saying which line.
    """  # noqa: E501 (a table)
    path = pathlib.Path(path)
    hint = "If it is GBK or GB18030, convert it: iconv -f GB18030 -t UTF-8."
    content = decode_utf8(path.read_bytes(), path, hint)
    if not content.strip():
        raise ValueError(f"{path} is empty. Expected texts with entities.")
    form = form or _form_of(content)
    if form not in _READERS:
        raise ValueError(f"`form` must be one of {list(_READERS)}. Received: {form}")
    options = {"separator": separator, "joiner": joiner} if form == "columns" else {}
    texts, rows, skipped = [], [], 0
    try:
        for record in _READERS[form](content, **options):
            texts.append(record.text)
            spans, wrong = _checked(record, skip_wrong)
            rows.append(spans)
            skipped += wrong
    except _WrongLine as error:
        raise ValueError(f"{error.where} of {path}: {error}") from None
    if not texts:
        raise ValueError(f"{path} holds no text with annotations (as {form}).")
    return TaggedTexts(texts, rows, skipped)


class _WrongLine(ValueError):
    def __init__(self, where, message):
        super().__init__(str(message))
        self.where = where


def _checked(record, skip_wrong):
    """The spans of a record, and how many were left out."""
    if not skip_wrong:
        try:
            return check_spans(record.spans, len(record.text)), 0
        except ValueError as error:
            raise _WrongLine(record.where, error) from None
    kept = []
    for span in record.spans:
        try:
            kept = check_spans([*kept, span], len(record.text))
        except ValueError:
            continue
    return kept, len(record.spans) - len(kept)


def _form_of(content):
    start = content.lstrip()
    if start[0] == "[":
        return "label_studio"
    line = start.split("\n", 1)[0]
    if start[0] == "{":
        # What is no JSON is told by the reader.
        is_cluener = '"label": {' in line or '"label":{' in line
        return "cluener" if is_cluener else "doccano"
    parts = line.split()
    return "slashes" if all("/" in part[1:] for part in parts) else "columns"


def _lines(content):
    """Numbers and lines; not splitlines, which also cuts within texts."""
    for number, line in enumerate(content.split("\n"), start=1):
        yield f"Line {number}", line.removesuffix("\r")


# === Tags ===


def _columns(content, separator=None, joiner=None) -> Iterator[_Record]:
    sentences, rows = [], []
    for where, line in [*_lines(content), ("the end", "")]:
        if line.strip() and not line.startswith("-DOCSTART-"):
            rows.append((where, *_cells(where, line, separator)))
        elif rows:
            sentences.append(rows)
            rows = []
    if joiner is None:
        joiner = _joiner([token for rows in sentences for _, token, _ in rows])
    for rows in sentences:
        yield _joined(rows, joiner)


def _cells(where, line, separator):
    cells = line.split(separator)
    if len(cells) == 1 and line[0].isspace():
        # The token is a space.
        cells = [line[0], *cells]
    if len(cells) < 2:
        raise _WrongLine(
            where,
            f"{line!r} has one column. Expected a token and its tag, such as "
            f"'中 B-ORG', separated by {separator or 'white space'!r}.",
        )
    token, tag = cells[0], cells[-1].strip()
    try:
        split_tag(tag)
    except ValueError as error:
        raise _WrongLine(where, error) from None
    return token or " ", tag


def _joiner(tokens):
    """Nothing between characters and words of Chinese, a space between others."""
    together = sum(len(x) == 1 or x[-1] >= _FIRST_UNSPACED for x in tokens)
    return "" if together > len(tokens) / 2 else " "


def _joined(rows, joiner):
    text, bounds = "", []
    for _, token, _ in rows:
        text += joiner if text else ""
        bounds.append((len(text), len(text) + len(token)))
        text += token
    spans = [
        (bounds[first][0], bounds[last - 1][1], label)
        for first, last, label in tags_to_spans(tag for _, _, tag in rows)
    ]
    return _Record(rows[0][0], text, spans)


def _slashes(content) -> Iterator[_Record]:
    for where, line in _lines(content):
        text, spans = "", []
        for part in line.split():
            word, slash, label = part.rpartition("/")
            if not (word and label):
                raise _WrongLine(
                    where, f"{part!r} is no word and label, such as '中共中央/nt'."
                )
            if label.upper() != "O":
                spans.append((len(text), len(text) + len(word), label))
            text += word
        if text:
            yield _Record(where, text, spans)


# === JSON ===


def _objects(content) -> Iterator[tuple[str, dict]]:
    """The JSON object of each line."""
    for where, line in _lines(content):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            raise _WrongLine(where, f"this is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise _WrongLine(where, f"this is no JSON object: {line[:80]}")
        yield where, found


def _text_of(where, record, *names):
    for name in names:
        if isinstance(record.get(name), str):
            return record[name]
    raise _WrongLine(where, f"there is no {' or '.join(names)} in {list(record)}.")


def _cluener(content) -> Iterator[_Record]:
    for where, record in _objects(content):
        text, labels = _text_of(where, record, "text"), record.get("label")
        try:
            spans = [
                # Its ends are the last characters.
                _located(text, start, end + 1, surface, label)
                for label, surfaces in labels.items()
                for surface, places in surfaces.items()
                for start, end in places
            ]
        except (AttributeError, TypeError, ValueError) as error:
            message = 'expected "label": {"name": {"叶老桂": [[9, 11]]}}. Found: '
            raise _WrongLine(where, f"{message}{labels!r} ({error})") from None
        yield _Record(where, text, spans)


def _doccano(content) -> Iterator[_Record]:
    for where, record in _objects(content):
        text = _text_of(where, record, "text", "data")
        names = [name for name in ("label", "labels", "entities") if name in record]
        found = record[names[0]] if names else None
        if not isinstance(found, list):
            raise _WrongLine(
                where,
                f'expected "label": [[0, 2, "PER"]], or "entities". Found: {found!r}',
            )
        keys = ("start_offset", "end_offset", "label")
        spans = [
            tuple(span.get(x) for x in keys) if isinstance(span, dict) else span
            for span in found
        ]
        yield _Record(where, text, spans)


def _label_studio(content) -> Iterator[_Record]:
    try:
        tasks = json.loads(content)
    except json.JSONDecodeError as error:
        raise _WrongLine(f"Line {error.lineno}", f"this is not JSON: {error}") from None
    for number, task in enumerate(tasks, start=1):
        where = f"Task {number}"
        if not isinstance(task, dict):
            raise _WrongLine(where, f"this is no JSON object: {task!r}")
        where += f" (id {task['id']})" if "id" in task else ""
        values = _values_of(task)
        if values is None:
            # Nobody has annotated it yet.
            continue
        data = task.get("data", task)
        text = _text_of(where, data, *(x for x in ("text", *data) if x != "label"))
        spans = [_studio_span(where, text, value) for value in values]
        yield _Record(where, text, spans)


def _values_of(task) -> list[dict] | None:
    """What the first annotator marked, dicts with start, end, text, labels."""
    if "data" not in task:
        return task.get("label")
    annotations = task.get("annotations", task.get("completions")) or []
    done = [x for x in annotations if not x.get("was_cancelled")]
    if not done:
        return None
    values = [part.get("value", {}) for part in done[0].get("result", [])]
    return [value for value in values if "labels" in value]


def _studio_span(where, text, value: Any):
    try:
        (label,) = value["labels"]
        return _located(text, value["start"], value["end"], value.get("text"), label)
    except (KeyError, TypeError, ValueError) as error:
        raise _WrongLine(
            where,
            'expected {"start": 0, "end": 2, "labels": ["PER"]}, with one label. '
            f"Found: {value!r} ({error})",
        ) from None


def _located(text, start, end, surface, label) -> Span:
    """A span whose offsets may count UTF-16 units, as browsers do."""
    if surface is None or text[start:end] == surface:
        return start, end, label
    units = text.encode("utf-16-le", "surrogatepass")
    before, inside = units[: 2 * start], units[2 * start : 2 * end]
    if inside.decode("utf-16-le", "replace") == surface:
        start = len(before.decode("utf-16-le", "replace"))
        return start, start + len(surface), label
    raise ValueError(
        f"from {start} to {end} stands {text[start:end]!r}, not {surface!r}"
    )


_READERS = {
    "columns": _columns,
    "slashes": _slashes,
    "cluener": _cluener,
    "doccano": _doccano,
    "label_studio": _label_studio,
}
