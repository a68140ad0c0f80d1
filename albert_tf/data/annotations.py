"""Texts with entities as annotation tools export them, in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from albert_tf.data.records import Record, WrongLine, lines_of
from albert_tf.data.tags import Span
from albert_tf_lite.errors import AlbertError


def _objects(content) -> Iterator[tuple[str, dict]]:
    """The JSON object of each line."""
    for where, line in lines_of(content):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            raise WrongLine(where, f"this is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise WrongLine(where, f"this is no JSON object: {line[:80]}")
        yield where, found


def _text_of(where, record, *names):
    for name in names:
        if isinstance(record.get(name), str):
            return record[name]
    raise WrongLine(where, f"there is no {' or '.join(names)} in {list(record)}.")


def read_cluener(content) -> Iterator[Record]:
    """JSON lines, labels to surfaces to places, as of CLUENER."""
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
            raise WrongLine(where, f"{message}{labels!r} ({error})") from None
        yield Record(where, text, spans)


def read_doccano(content) -> Iterator[Record]:
    """JSON lines, a list of spans a text, as doccano exports."""
    for where, record in _objects(content):
        text = _text_of(where, record, "text", "data")
        names = [name for name in ("label", "labels", "entities") if name in record]
        found = record[names[0]] if names else None
        if not isinstance(found, list):
            raise WrongLine(
                where,
                f'expected "label": [[0, 2, "PER"]], or "entities". Found: {found!r}',
            )
        keys = ("start_offset", "end_offset", "label")
        spans = [
            tuple(span.get(x) for x in keys) if isinstance(span, dict) else span
            for span in found
        ]
        yield Record(where, text, spans)


def read_label_studio(content) -> Iterator[Record]:
    """A JSON list of tasks, the whole export of Label Studio or JSON-MIN."""
    try:
        tasks = json.loads(content)
    except json.JSONDecodeError as error:
        raise WrongLine(f"Line {error.lineno}", f"this is not JSON: {error}") from None
    for number, task in enumerate(tasks, start=1):
        where = f"Task {number}"
        if not isinstance(task, dict):
            raise WrongLine(where, f"this is no JSON object: {task!r}")
        where += f" (id {task['id']})" if "id" in task else ""
        values = _values_of(task)
        if values is None:
            # Nobody has annotated it yet.
            continue
        data = task.get("data", task)
        text = _text_of(where, data, *(x for x in ("text", *data) if x != "label"))
        spans = [_studio_span(where, text, value) for value in values]
        yield Record(where, text, spans)


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
        raise WrongLine(
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
    raise AlbertError(
        f"from {start} to {end} stands {text[start:end]!r}, not {surface!r}"
    )
