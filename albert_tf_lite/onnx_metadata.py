"""Read the metadata of ONNX files without ONNX Runtime, before the file is trusted.

They are protocol buffers: fields, each a number with its type and its length.
"""

import io
import os
from typing import BinaryIO

# The field `metadata_props` of a model. An entry has the fields key and value.
_METADATA = 14
_KEY, _VALUE = 1, 2
# Types of fields, and the bytes of those of fixed length.
_NUMBER, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
# Bytes of the largest number.
_LONGEST = 10


def read_metadata(path: str | os.PathLike) -> dict[str, str]:
    """Return the metadata of an ONNX file; an empty dict if it is not a whole one."""
    with open(path, "rb") as file:
        try:
            entries = [
                dict(_fields(io.BytesIO(entry), _KEY, _VALUE))
                for _, entry in _fields(file, _METADATA)
            ]
            return {x[_KEY].decode(): x[_VALUE].decode() for x in entries}
        except (ValueError, LookupError):
            return {}


def _fields(file: BinaryIO, *wanted: int) -> list[tuple[int, bytes]]:
    """Return the number and the content of some fields of a message.

    Raises:
        ValueError: if the file is truncated or no protocol buffer.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    fields = []
    while file.tell() < end:
        number, kind = divmod(_read_number(file), 8)
        if kind == _NUMBER:
            _read_number(file)
            continue
        length = _read_number(file) if kind == _BYTES else _FIXED.get(kind, end)
        if length > end - file.tell():
            raise ValueError("a field is longer than the file")
        if kind == _BYTES and number in wanted:
            fields.append((number, file.read(length)))
        else:
            file.seek(length, os.SEEK_CUR)
    return fields


def _read_number(file: BinaryIO) -> int:
    """Read a number: seven bits per byte, the lowest first."""
    value = 0
    for i in range(_LONGEST):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 127) << 7 * i
        if byte[0] < 128:
            return value
    raise ValueError("a number does not end")
