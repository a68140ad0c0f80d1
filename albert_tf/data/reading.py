"""Read text and JSON files, with errors that name the line or the entry."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import itertools
import json
import os
import pathlib
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

from albert_tf_lite.errors import AlbertError, import_extra

ZSTD_ENDINGS = (".zst", ".zstd")
COMPRESSED_ENDINGS = (".gz", *ZSTD_ENDINGS)
_CHUNK = 2**18
# The part of a stream that determines its encoding.
HEAD_BYTES = 2**20
# A zstd block of 128 kB may take 4 bytes: pieces of this size decompress to at most
# 4 MB.
_ZSTD_PIECE = 128
# `zstd --long=31`, as used for dumps of forums; the default reads windows up to 2**27.
_ZSTD_WINDOW = 2**31


def endings(path: str | os.PathLike) -> tuple[str, str]:
    """Return the endings for kind and compression, such as `(".jsonl", ".gz")`."""
    *_, first, last = ("", "", *pathlib.Path(path).suffixes)
    first, last = first.lower(), last.lower()
    return (first, last) if last in COMPRESSED_ENDINGS else (last, "")


def byte_chunks(path: str | os.PathLike, file: io.BufferedReader) -> Iterator[bytes]:
    """Yield the decompressed content of an open file in chunks."""
    compression = endings(path)[1]
    if compression in ZSTD_ENDINGS:
        return _zstd_chunks(file)
    # At a damage `read` loses the bytes before it; `read1` does not.
    read = gzip.GzipFile(fileobj=file).read1 if compression else file.read1
    return iter(lambda: read(_CHUNK), b"")


def _zstd_chunks(file: io.BufferedReader) -> Iterator[bytes]:
    zstandard = import_extra("zstandard")
    # `stream_reader` does not report a truncated file.
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = None
    while piece := file.read(_ZSTD_PIECE):
        while piece:
            frame = frame or decompressor.decompressobj()
            try:
                yield frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise OSError(error) from error
            piece = frame.unused_data
            frame = None if frame.eof else frame
    if frame:
        raise EOFError("it ends within a zstd frame")


@contextlib.contextmanager
def _open_chunks(path):
    """Yield the chunks of a file that are not empty."""
    with open(path, "rb") as file:
        try:
            yield filter(None, byte_chunks(path, file))
        except (OSError, EOFError, zlib.error) as error:
            raise AlbertError(f"{path} is damaged or truncated: {error}.") from error


def encoding_of(path: str | os.PathLike, size: int | None = None) -> str:
    """Return "utf-8" or, with a warning, GB18030 or UTF-16.

    Only the lines in the first `size` bytes are read, by default all.
    """
    data = bytearray()
    with _open_chunks(path) as chunks:
        for chunk in chunks:
            data += chunk
            if size and len(data) >= size:
                # Without the line that is cut.
                del data[data.rfind(b"\n") + 1 :]
                break
    head, encoding = data[:1000], "gb18030"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif 100 * head.count(0) > len(head):
        # In UTF-16, one byte of each ASCII character is 0, of line ends at least.
        is_big_endian = head[::2].count(0) > head[1::2].count(0)
        encoding = "utf-16-be" if is_big_endian else "utf-16-le"
    lines = [line for line in data.split(b"\n") if not line.isascii()]
    others = [x for x in lines if x.decode("utf-8", "ignore").encode() != x]
    # If half of the lines or more are UTF-8, the other ones are damaged.
    if encoding != "gb18030" or 2 * len(others) > len(lines):
        with contextlib.suppress(UnicodeDecodeError):
            # The last character of a part may be incomplete.
            codecs.getincrementaldecoder(encoding)().decode(data, size is None)
            message = f"{path} is {encoding}, not UTF-8. Read as such."
            warnings.warn(message, stacklevel=2)
            return encoding
    return "utf-8"


def stream_lines(path: str | os.PathLike, encoding: str | None = None) -> Iterator[str]:
    """Yield the lines of a file, by default in its `encoding_of`."""
    encoding = encoding or encoding_of(path)
    name = "utf-8-sig" if encoding == "utf-8" else encoding
    decoder, count, rest = codecs.getincrementaldecoder(name)(), 1, ""
    with _open_chunks(path) as chunks:
        for chunk in itertools.chain(chunks, [b""]):
            try:
                text = rest + decoder.decode(chunk, not chunk)
            except UnicodeDecodeError as error:
                count += error.object.count(b"\n", 0, error.start)
                byte = error.object[error.start]
                raise AlbertError(
                    f"{path} is not {encoding.upper()}: byte {byte:#04x} in line "
                    f"{count}. Save it as text in UTF-8."
                ) from error
            # Not splitlines, which also splits at characters that texts contain.
            *lines, rest = text.split("\n")
            count += len(lines)
            for line in lines:
                yield line.removesuffix("\r")
    if rest:
        yield rest


def read_lines(path: str | os.PathLike) -> list[str]:
    """Read the lines of a file in UTF-8 or, with a warning, in GB18030 or UTF-16."""
    return list(stream_lines(path))


def numbered_lines(
    path: str | os.PathLike, encoding: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank, each after its place: "Line 3 of a.tsv"."""
    lines = enumerate(stream_lines(path, encoding), start=1)
    return ((f"Line {i} of {path}", line) for i, line in lines if line.strip())


def read_json(
    path: str | os.PathLike, encoding: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield JSON lines, the entries of a JSON list, or another JSON document.

    Each value comes after its place.
    """
    rows = numbered_lines(path, encoding)
    head = list(itertools.islice(rows, 2))
    if len(head) > 1:
        try:
            json.loads(head[0][1])
        except json.JSONDecodeError:
            # A document of several lines.
            head = [(str(path), "\n".join(line for _, line in (*head, *rows)))]
    for place, text in itertools.chain(head, rows):
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise AlbertError(f"{place} is not JSON: {error}.") from error
        if len(head) == 1 and isinstance(value, list):
            yield from ((f"Entry {i} of {path}", x) for i, x in enumerate(value, 1))
        else:
            yield place, value


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
