"""Read text and JSON files, with errors that name the line or the entry."""

from __future__ import annotations

import codecs
import json
import os
import pathlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from albert_tf.files import decode_utf8
from albert_tf_lite.errors import AlbertError


def read_text(path: str | os.PathLike) -> str:
    """Read a text file in UTF-8 or, with a warning, in GB18030 (GBK) or UTF-16.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file has another encoding. Names the byte and its line.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        kind = "is a directory, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {kind}.")
    data = path.read_bytes()
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
    """Yield each line after its place, such as "Line 3 of a.tsv"."""
    for number, line in enumerate(read_lines(path), start=1):
        yield f"Line {number} of {path}", line


def parse_json_lines(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """Yield the JSON value of each `numbered_lines` that is not blank, with its place.

    Raises:
        AlbertError: if a line is not JSON. Names the line.
    """
    for place, line in lines:
        if line.strip():
            try:
                yield place, json.loads(line)
            except json.JSONDecodeError as error:
                raise AlbertError(f"{place} is not JSON: {error}.") from error


def read_json(path: str | os.PathLike) -> Any:
    """Read a JSON file.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is not JSON. Names the line.
    """
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        place = f"Line {error.lineno} of {path}"
        raise AlbertError(f"{place} is not JSON: {error.msg}.") from error


def read_json_records(path: pathlib.Path) -> Iterator[tuple[str, Any]]:
    """Yield place and value of each item of a `.json` list, or of each JSON line."""
    if path.suffix != ".json":
        return parse_json_lines(numbered_lines(path))
    records = enumerate(read_json(path), start=1)
    return ((f"Entry {number} of {path}", record) for number, record in records)


def field(
    record: Any,
    names: str | tuple[str, ...],
    kinds: type | tuple[type, ...],
    place: str,
) -> Any:
    """Return a field of a JSON object.

    Args:
        record: the parsed JSON, which should be a dict.
        names: name of the field, or several of which the first present one is read.
        kinds: type of the value, or tuple of types.
        place: name of the object in error messages, such as "Line 3 of a.jsonl".

    Raises:
        AlbertError: if the field is missing or its value has another type.
    """
    names, kinds = (x if isinstance(x, tuple) else (x,) for x in (names, kinds))
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
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
        expected = " or ".join(_JSON_TYPES[kind] for kind in kinds)
        raise AlbertError(
            f"{name!r} of {place} should be {expected}. Found: {str(value)[:80]!r}"
        )
    return value


_JSON_TYPES = {
    str: "a string",
    list: "a list",
    dict: "an object",
    int: "an integer",
    bool: "true or false",
}


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
