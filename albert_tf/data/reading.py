"""Read text and JSON files, with errors that name the line or the entry."""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import json
import os
import pathlib
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from albert_tf.data.encodings import NAMES, guess_encoding, try_decode
from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_start

ZSTD_ENDINGS = (".zst", ".zstd")
COMPRESSED_ENDINGS = (".gz", *ZSTD_ENDINGS)
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
_CHUNK = 2**18
# The part of a file that determines its encoding.
HEAD_BYTES = 2**20
# A zstd block of 128 kB may take 4 bytes: pieces of this size decompress to at most
# 4 MB.
_ZSTD_PIECE = 128
# `zstd --long=31`, as used for dumps of forums; the default reads windows up to 2**27.
_ZSTD_WINDOW = 2**31
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# First bytes of files without text.
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive, or a document of Office",
    b"\xd0\xcf\x11\xe0": "an old document of Office. Save it as .xlsx or .csv",
    b"PAR1": "a Parquet file",
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM\x00"), "an image"),
    **dict.fromkeys((b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!"), "an archive"),
    b"%PDF": "a PDF document",
    b"SQLite format 3": "a database of SQLite",
}
_HTML = re.compile(r"\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_JSON = re.compile(r'\s*((\[\s*)*\{\s*"|(\[\s*){2,}"|[\[{]\s*$)')
DOCUMENT_TAG = re.compile(r"\s*</?doc(\s[^>]*)?>\s*")


def endings(path: str | os.PathLike) -> tuple[str, str]:
    """Return the endings for kind and compression, such as `(".jsonl", ".gz")`."""
    *_, first, last = ("", "", *pathlib.Path(path).suffixes)
    first, last = first.lower(), last.lower()
    return (first, last) if last in COMPRESSED_ENDINGS else (last, "")


# === Bytes ===


def byte_chunks(file: Any) -> Iterator[bytes]:
    """Yield the content of an open file in chunks, decompressed."""
    start = file.peek(4)
    if start.startswith(_ZSTD):
        return _zstd_chunks(file)
    # At a damage `read` loses the bytes before it; `read1` does not.
    read = gzip.GzipFile(fileobj=file).read1 if start.startswith(_GZIP) else file.read1
    return iter(lambda: read(_CHUNK), b"")


def _zstd_chunks(file: BinaryIO) -> Iterator[bytes]:
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


class _Chunks(io.BufferedIOBase):
    """Chunks of bytes as a file for `io.TextIOWrapper`."""

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks

    def readable(self):
        return True

    def read1(self, size=-1):
        return next(self._chunks, b"")


# === Text ===


def open_text(
    path: str | os.PathLike,
    file: Any,
    encoding: str | None = None,
    errors: str = "strict",
    newline: str | None = "",
) -> io.TextIOWrapper:
    """Return the text of an open file, decompressed and by default in its encoding.

    `errors` and `newline` are those of `open`. Raise if the file holds no text or,
    with the errors "strict", if its encoding is unknown.
    """
    chunks, head = filter(None, byte_chunks(file)), b""
    try:
        while len(head) < HEAD_BYTES and (chunk := next(chunks, b"")):
            head += chunk
    except (OSError, EOFError, zlib.error) as error:
        # Until then the file can be read.
        chunks = _raise(error)
    check_kind(path, head, encoding or "utf-8")
    encoding = encoding or _detect_encoding(path, head, errors)
    zeros = (try_decode(head, encoding) or "").count("\0")
    if errors == "strict" and 100 * zeros > len(head):
        raise AlbertError(f"{path} is not text: it has zero bytes.")
    whole: Any = _Chunks(itertools.chain([head], chunks))
    return io.TextIOWrapper(whole, encoding, errors, newline)


def _raise(error):
    raise error
    yield


def _detect_encoding(path, head, errors):
    """Return the encoding of a file; warn if it is not UTF-8, or in doubt."""
    found = guess_encoding(head)
    if found.encoding == "utf-8" or (found.encoding is None and errors != "strict"):
        return "utf-8"
    if found.encoding is None:
        reason = "no encoding of Chinese, Japanese or Korean makes common words of it"
        if found.other == "utf-8":
            reason = "some lines are UTF-8 and others are not"
        raise AlbertError(
            f"The encoding of {path} is unknown: {reason}. Save it as text in UTF-8, "
            "or name the encoding with `encoding=`."
        )
    names = [NAMES.get(x, x) for x in found if x]
    message = f"{path} is {names[0]}, not UTF-8. Read as such."
    if found.other:
        texts = (try_decode(head, x) or "" for x in found)
        matches = (re.search(r"[^\0-~\s].{,19}", x) for x in texts)
        samples = [x[0] if x else "" for x in matches]
        message = (
            f"{path} is not UTF-8. Read as {names[0]} it has {samples[0]!r}. It may be "
            f"{names[1]}: {samples[1]!r}. Name the encoding with `encoding=`."
        )
    warnings.warn(message, stacklevel=2)
    return found.encoding


def check_kind(path: str | os.PathLike, head: bytes, encoding: str) -> None:
    """Raise if the start of a file is not that of a text."""
    check_start(path, head)
    # A length of 8 bytes, its checksum of 4, and a protocol buffer.
    if head[4:8] == bytes(4) and head[12:13] == b"\n":
        raise AlbertError(
            f"{path} looks like a TFRecord file, which holds no text but, for example, "
            "ids to pretrain on. Pass the text itself. examples/convert_tfrecords.py "
            "converts records of google-research/albert and albert_zh."
        )
    for signature, kind in _SIGNATURES.items():
        if head.startswith(signature):
            raise AlbertError(f"{path} is not text but looks like {kind}.")
    try:
        text = codecs.getincrementaldecoder(encoding)("ignore").decode(head)
    except LookupError:
        raise AlbertError(
            f"There is no encoding {encoding!r}. Expected a name such as utf-8, "
            "gb18030 or big5."
        ) from None
    if _HTML.match(text):
        raise AlbertError(
            f"{path} looks like a page in HTML or XML. Download the data itself, or "
            "save its text."
        )


def stream_lines(
    path: str | os.PathLike, encoding: str | None = None, keepends: bool = False
) -> Iterator[str]:
    """Yield the lines of a file, by default in the encoding of its start.

    Lines end with \\n, \\r or \\r\\n; `keepends` keeps those.
    """
    count = 0
    with open(path, "rb") as file:
        try:
            text = open_text(path, file, encoding)
            for count, line in enumerate(text, start=1):
                line = line if count > 1 else line.removeprefix("\ufeff")
                yield line if keepends else line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(text.encoding, "ignore")
            count += 1 + len(re.findall("\r\n|\r|\n", before))
            raise AlbertError(
                f"{path} is not {text.encoding.upper()}: byte "
                f"{error.object[error.start]:#04x} in line {count}. Save it as text in "
                "UTF-8, or name its encoding with `encoding=`."
            ) from error
        except (OSError, EOFError, zlib.error) as error:
            raise AlbertError(f"{path} is damaged or truncated: {error}.") from error


# === JSON ===


def is_json(line: str) -> bool:
    """Return whether the first line of a file looks like that of JSON."""
    return _JSON.match(line) is not None


def read_json(
    path: str | os.PathLike,
    encoding: str | None = None,
    lines: Iterable[str] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield JSON lines, the entries of a JSON list, or another JSON document.

    Each value comes after its place. `lines` are those of the file, if they are known.
    """
    lines = stream_lines(path, encoding) if lines is None else lines
    rows = ((f"Line {i} of {path}", x) for i, x in enumerate(lines, 1) if x.strip())
    head = list(itertools.islice(rows, 2))
    if len(head) > 1:
        try:
            json.loads(head[0][1])
        except RecursionError:
            pass  # Refused below, with its place.
        except json.JSONDecodeError:
            # A document of several lines.
            head = [(str(path), "\n".join(line for _, line in (*head, *rows)))]
    for place, text in itertools.chain(head, rows):
        try:
            value = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise AlbertError(f"{place} is not JSON: {error}.") from error
        if len(head) == 1 and isinstance(value, list):
            yield from ((f"Entry {i} of {path}", x) for i, x in enumerate(value, 1))
        else:
            yield place, value


def _with_unique_names(pairs):
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a name twice: {[name for name, _ in pairs]}")
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_with_unique_names)


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
