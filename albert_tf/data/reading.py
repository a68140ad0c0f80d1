"""Read text and JSON files, with errors that name the line or the entry."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import pathlib
import warnings
from typing import Any

from albert_tf.files import decode_utf8
from albert_tf_lite.errors import AlbertError


def read_lines(path: str | os.PathLike) -> list[str]:
    """Read the lines of a file in UTF-8 or, with a warning, in GB18030 or UTF-16."""
    data = pathlib.Path(path).read_bytes()
    head, encoding = data[:1000], "gb18030"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif 100 * head.count(0) > len(head):
        # In UTF-16, one byte of each ASCII character is 0, of line ends at least.
        is_big_endian = head[::2].count(0) > head[1::2].count(0)
        encoding = "utf-16-be" if is_big_endian else "utf-16-le"
    lines = [line for line in data.split(b"\n") if not line.isascii()]
    others = [x for x in lines if x.decode("utf-8", "ignore").encode() != x]
    text = None
    # If half of the lines or more are UTF-8, the other ones are damaged.
    if encoding != "gb18030" or 2 * len(others) > len(lines):
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            message = f"{path} is {encoding}, not UTF-8. Read as such."
            warnings.warn(message, stacklevel=2)
    if text is None:
        text = decode_utf8(data, path, "Save it as text in UTF-8.")
    # Not splitlines, which also splits at characters that texts contain.
    return text.replace("\r\n", "\n").split("\n")


def numbered_lines(path: str | os.PathLike) -> list[tuple[str, str]]:
    """Read the lines that are not blank, each after its place: "Line 3 of a.tsv"."""
    lines = enumerate(read_lines(path), start=1)
    return [(f"Line {i} of {path}", line) for i, line in lines if line.strip()]


def read_json(path: str | os.PathLike) -> list[tuple[str, Any]]:
    """Read JSON lines, the entries of a JSON list, or another JSON document.

    Returns a list of places and values.
    """
    rows = numbered_lines(path)
    if len(rows) > 1:
        try:
            json.loads(rows[0][1])
        except json.JSONDecodeError:
            # A document of several lines.
            rows = [(str(path), "\n".join(line for _, line in rows))]
    found = []
    for place, text in rows:
        try:
            found.append((place, json.loads(text)))
        except json.JSONDecodeError as error:
            raise AlbertError(f"{place} is not JSON: {error}.") from error
    if len(found) == 1 and isinstance(found[0][1], list):
        return [(f"Entry {i} of {path}", x) for i, x in enumerate(found[0][1], 1)]
    return found


def field(record: Any, names: str | tuple[str, ...], kind: Any, place: str) -> Any:
    """Return a field of a JSON object: the first of `names` that it has.

    Raises an error that names the `place` if the field is missing or the value is not
    of type `kind`.
    """
    names = names if isinstance(names, tuple) else (names,)
    is_object = isinstance(record, dict)
    value = next((record[x] for x in names if x in record), None) if is_object else None
    if not isinstance(value, kind):
        kinds = getattr(kind, "__name__", kind)
        raise AlbertError(
            f"{place} should have the field {' or '.join(map(repr, names))} ({kinds}). "
            f"Found: {str(record)[:80]!r}"
        )
    return value
