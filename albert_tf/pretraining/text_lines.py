"""Reading a file of text as lines, some at a time: decompressed, decoded, stripped."""

import codecs
import gzip

from albert_tf.pretraining.corpus_files import ZSTD_ENDINGS, endings, import_zstandard

_CHUNK = 2**18
# A zstd block of 128 kB may take 4 bytes. So a bomb, or 50 MB of one letter, comes out
# of such pieces 4 MB at a time.
_ZSTD_PIECE = 128
# Text from `zstd --long=31`, as dumps of forums are; the default reads up to 27.
_ZSTD_WINDOW = 2**31

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_lines(path, file, max_line_bytes, skipped):
    """Yield the lines of a file without white space around them, in lists.

    Those that are "not_utf8" or "too_long" are skipped, and counted in `skipped`. A
    file that is damaged ends in an `OSError`, `EOFError` or `zlib.error`.
    """
    is_utf16 = False
    for number, data in enumerate(_whole_lines(_chunks(path, file), max_line_bytes)):
        if number == 0:
            # Western text in UTF-16 is valid UTF-8 with NULs, but for this mark.
            is_utf16 = data.startswith(_UTF16)
            data = data.removeprefix(codecs.BOM_UTF8)
        if is_utf16:
            skipped["not_utf8"] += data.count(b"\n") + 1
        else:
            yield list(_decoded(data, max_line_bytes, skipped))


def _chunks(path, file):
    """Yield a file's decompressed bytes, some at a time."""
    compression = endings(path)[1]
    if compression in ZSTD_ENDINGS:
        yield from _zstd_chunks(import_zstandard(path), file)
        return
    stream = gzip.GzipFile(fileobj=file) if compression else file
    # Not `read`, which at a damage loses what it has got so far.
    while chunk := stream.read1(_CHUNK):
        yield chunk


def _zstd_chunks(zstandard, file):
    # Not `stream_reader`, for which a file that is cut short just ends.
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = None
    while piece := file.read(_ZSTD_PIECE):
        while piece:
            frame = frame or decompressor.decompressobj()
            try:
                chunk = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise OSError(error) from error
            if chunk:
                yield chunk
            if not frame.eof:
                break
            piece, frame = frame.unused_data, None
    if frame:
        raise EOFError("it ends within a zstd frame")


def _whole_lines(chunks, max_line_bytes):
    """Yield bytes cut at the ends of lines, the last of which is left out.

    The part of a line beyond the limit may be missing, never one up to it.
    """
    rest = bytearray()
    limit = max_line_bytes + len(codecs.BOM_UTF8)
    for chunk in chunks:
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield rest + head
            rest = bytearray(tail)
        elif len(rest) <= limit:
            rest += tail
    if rest:
        yield rest


def _decoded(data, max_line_bytes, skipped):
    for line in data.split(b"\n"):
        if len(line) > max_line_bytes:
            skipped["too_long"] += 1
            continue
        try:
            yield line.decode().strip()
        except UnicodeDecodeError:
            skipped["not_utf8"] += 1
