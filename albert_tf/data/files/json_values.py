"""Read JSON files, with errors that name the line or the entry."""

from __future__ import annotations

import itertools
import json
import os
import re
import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from albert_tf.data.files.text_lines import stream_lines
from albert_tf_lite.errors import AlbertError

JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
_JSON = re.compile(r'\s*((\[\s*)*\{\s*"|(\[\s*){2,}"|[\[{]\s*$)')


class PlacedValue(NamedTuple):
    """A value of a JSON file, and its place such as "Line 3 of a.jsonl"."""

    place: str
    value: Any


class _PlacedText(NamedTuple):
    """JSON that is not parsed yet, and its place."""

    place: str
    text: str


def is_json(line: str) -> bool:
    """Return whether the first line of a file looks like that of JSON."""
    return _JSON.match(line) is not None


def read_json(
    path: str | os.PathLike,
    encoding: str | None = None,
    lines: Iterable[str] | None = None,
) -> Iterator[PlacedValue]:
    """Yield JSON lines, the entries of a JSON list, or another JSON document.

    `lines` are those of the file, if they are known.
    """
    if lines is None:
        lines = stream_lines(path, encoding)
    texts = _placed_lines(path, lines)
    first_two = list(itertools.islice(texts, 2))
    if len(first_two) == 2 and _is_partial(first_two[0].text):
        # A document of several lines.
        document = [line.text for line in itertools.chain(first_two, texts)]
        first_two = [_PlacedText(str(path), "\n".join(document))]
    is_one_document = len(first_two) == 1
    for place, text in itertools.chain(first_two, texts):
        try:
            value = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise AlbertError(f"{place} is not JSON: {error}.") from error
        if is_one_document and isinstance(value, list):
            for number, entry in enumerate(value, start=1):
                yield PlacedValue(f"Entry {number} of {path}", entry)
        else:
            yield PlacedValue(place, value)


def _placed_lines(
    path: str | os.PathLike, lines: Iterable[str]
) -> Iterator[_PlacedText]:
    """Yield the lines that are not blank."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _PlacedText(f"Line {number} of {path}", line)


def _is_partial(line: str) -> bool:
    """Return whether a line is not a complete JSON value."""
    try:
        json.loads(line)
    except RecursionError:
        return False  # Refused later, with its place.
    except json.JSONDecodeError:
        return True
    return False


def _with_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a name twice: {[name for name, _ in pairs]}")
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_with_unique_names)


def field(
    record: object,
    names: str | tuple[str, ...],
    kind: type | types.UnionType,
    place: str,
) -> Any:
    """Return a field of a JSON object: the first of `names` that it has.

    Raises an error that names the `place` if the field is missing or the value is not
    of type `kind`.
    """
    names = names if isinstance(names, tuple) else (names,)
    value = None
    if isinstance(record, dict):
        value = next((record[name] for name in names if name in record), None)
    if not isinstance(value, kind):
        kinds = getattr(kind, "__name__", kind)
        raise AlbertError(
            f"{place} should have the field {' or '.join(map(repr, names))} ({kinds}). "
            f"Found: {str(record)[:80]!r}"
        )
    return value
