"""Read compressed files in chunks."""

from __future__ import annotations

import gzip
import io
import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO

from albert_tf.extras import import_extra

ZSTD_ENDINGS = (".zst", ".zstd")
COMPRESSED_ENDINGS = (".gz", *ZSTD_ENDINGS)
_CHUNK = 2**18
# A zstd block of 128 kB may take 4 bytes: pieces of this size decompress to at most
# 4 MB.
_ZSTD_PIECE = 128
# `zstd --long=31`, as used for dumps of forums; the default reads windows up to 2**27.
_ZSTD_WINDOW = 2**31
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def endings(path: str | os.PathLike) -> tuple[str, str]:
    """Return the endings for kind and compression, such as `(".jsonl", ".gz")`."""
    suffixes = [suffix.lower() for suffix in pathlib.Path(path).suffixes]
    compression = ""
    if suffixes and suffixes[-1] in COMPRESSED_ENDINGS:
        compression = suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    return kind, compression


def byte_chunks(file: io.BufferedReader) -> Iterator[bytes]:
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
