"""Read text and JSON files, with errors that name the line or the entry."""

from __future__ import annotations

import codecs
import json
import os
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

from albert_tf.files import decode_utf8
from albert_tf_lite.errors import AlbertError


def read_text(path: str | os.PathLike) -> str:
    """Read a text file in UTF-8 or, with a warning, in GB18030 (GBK) or UTF-16."""
    data = pathlib.Path(path).read_bytes()
    encoding = _encoding(data)
    if encoding == "utf-8":
        return decode_utf8(data, path, "Save it as UTF-8.")
    warnings.warn(f"{path} is {encoding}, not UTF-8. Read as such.", stacklevel=2)
    return data.decode(encoding)


def read_lines(path: str | os.PathLike) -> list[str]:
    """Read the lines of a text file, without their ends (LF or CRLF)."""
    # Not splitlines, which also splits at characters that texts contain.
    return read_text(path).replace("\r\n", "\n").split("\n")


def numbered_lines(path: str | os.PathLike) -> Iterator[tuple[str, str]]:
    """Yield each line that is not blank after its place, such as "Line 3 of a.tsv"."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield f"Line {number} of {path}", line


def parse_json(text: str, place: str) -> Any:
    """Parse JSON; errors name the `place` of the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise AlbertError(f"{place} is not JSON: {error}.") from error


def read_json_records(path: str | os.PathLike) -> Iterator[tuple[str, Any]]:
    """Yield place and value of each entry of a `.json` list, or of each JSON line."""
    if pathlib.Path(path).suffix == ".json":
        for number, record in enumerate(parse_json(read_text(path), str(path)), 1):
            yield f"Entry {number} of {path}", record
    else:
        for place, line in numbered_lines(path):
            yield place, parse_json(line, place)


def field(record: Any, names: str | tuple[str, ...], kind: Any, place: str) -> Any:
    """Return a field of a JSON object: the first of `names` that it has.

    Raises an error that names the `place` if the field is missing or the value is not
    of type `kind`.
    """
    names = names if isinstance(names, tuple) else (names,)
    wanted = " or ".join(map(repr, names))
    if not isinstance(record, dict):
        raise AlbertError(
            f"{place} should be an object with the field {wanted}. Found: "
            f"{str(record)[:80]!r}"
        )
    name = next((name for name in names if name in record), None)
    if name is None:
        raise AlbertError(
            f"{place} has no field {wanted}. Its fields are {sorted(record)}."
        )
    value = record[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        expected = getattr(kind, "__name__", kind)
        raise AlbertError(
            f"{name!r} of {place} should be {expected}. Found: {str(value)[:80]!r}"
        )
    return value


def _encoding(data):
    """Return the encoding of a file; "utf-8" if none fits."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if _decodes(data, "utf-8") or not _decodes(data, "gb18030"):
        return "utf-8"
    # If half of the lines or more are UTF-8, the other ones are damaged.
    lines = [line for line in data.split(b"\n") if not line.isascii()]
    num_utf8 = sum(_decodes(line, "utf-8") for line in lines)
    return "utf-8" if 2 * num_utf8 >= len(lines) else "gb18030"


def _decodes(data, encoding):
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
