"""Read text files line by line, with errors that name the line."""

from __future__ import annotations

import codecs
import io
import itertools
import os
import re
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

from albert_tf.data.files.compression import byte_chunks
from albert_tf.data.files.encodings import NAMES, guess_encoding, try_decode
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_start

# The part of a file that determines its encoding.
HEAD_BYTES = 2**20
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
DOCUMENT_TAG = re.compile(r"\s*</?doc(\s[^>]*)?>\s*")


class _Chunks(io.BufferedIOBase):
    """Chunks of bytes as a file for `io.TextIOWrapper`."""

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks

    def readable(self):
        return True

    def read1(self, size=-1):
        return next(self._chunks, b"")


def open_text(
    path: str | os.PathLike,
    file: io.BufferedReader,
    encoding: str | None = None,
    errors: str = "strict",
    newline: str | None = "",
) -> io.TextIOWrapper:
    """Return the text of an open file, decompressed and by default in its encoding.

    `errors` and `newline` are those of `open`. Raise if the file holds no text or,
    with the errors "strict", if its encoding is unknown.
    """
    chunks: Iterator[bytes] = filter(None, byte_chunks(file))
    head = b""
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


def _raise(error: Exception) -> Iterator[bytes]:
    raise error
    yield


def _detect_encoding(path: str | os.PathLike, head: bytes, errors: str) -> str:
    """Return the encoding of a file; warn if it is not UTF-8, or in doubt."""
    guess = guess_encoding(head)
    is_unknown = guess.encoding is None
    if guess.encoding == "utf-8" or (is_unknown and errors != "strict"):
        return "utf-8"
    if guess.encoding is None:
        reason = "no encoding of Chinese, Japanese or Korean makes common words of it"
        if guess.other == "utf-8":
            reason = "some lines are UTF-8 and others are not"
        raise AlbertError(
            f"The encoding of {path} is unknown: {reason}. Save it as text in UTF-8, "
            "or name the encoding with `encoding=`."
        )
    name = NAMES.get(guess.encoding, guess.encoding)
    message = f"{path} is {name}, not UTF-8. Read as such."
    if guess.other:
        message = (
            f"{path} is not UTF-8. Read as {name} it has "
            f"{_sample(head, guess.encoding)!r}. It may be "
            f"{NAMES.get(guess.other, guess.other)}: {_sample(head, guess.other)!r}. "
            "Name the encoding with `encoding=`."
        )
    warnings.warn(message, stacklevel=2)
    return guess.encoding


def _sample(head: bytes, encoding: str) -> str:
    """Return the first characters of a file, from one that is not ASCII on."""
    match = re.search(r"[^\0-~\s].{,19}", try_decode(head, encoding) or "")
    return match[0] if match else ""


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
