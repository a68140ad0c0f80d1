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


def read_lines(path, file, max_line_bytes):
    """Read the lines of a file as a stream.

    Args:
        path: `pathlib.Path`, whose ending says how the file is compressed.
        file: the file, opened for reading bytes.
        max_line_bytes: int, the longest line.

    Yields:
        Lists of lines without white space around them, each with a dict of how many
        lines were skipped after them, by reason: "not_utf8" or "too_long".

    Raises:
        OSError, EOFError, zlib.error: if the file is damaged or cut short.
    """
    is_utf16 = False
    for number, data in enumerate(_whole_lines(_chunks(path, file), max_line_bytes)):
        if number == 0:
            # Western text in UTF-16 is valid UTF-8 with NULs, but for this mark.
            is_utf16 = data.startswith(_UTF16)
            data = data.removeprefix(codecs.BOM_UTF8)
        if is_utf16:
            yield [], {"not_utf8": data.count(b"\n") + 1}
        else:
            yield from _decoded(data, max_line_bytes)


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


def _decoded(data, max_line_bytes):
    if len(data) <= max_line_bytes:
        try:
            yield stripped(data.decode().split("\n")), {}
            return
        except UnicodeDecodeError:
            pass
    lines = data.split(b"\n")
    yield from joined(_decoded_line(line, max_line_bytes) for line in lines)


def _decoded_line(line, max_line_bytes):
    if len(line) > max_line_bytes:
        return None, "too_long"
    try:
        return [line.decode().strip()], None
    except UnicodeDecodeError:
        return None, "not_utf8"


def stripped(lines):
    """Lines without the white space around them, a list."""
    return list(map(str.strip, lines))


def joined(parts):
    """Join lists of lines, as far as possible without moving what was skipped.

    Args:
        parts: iterable of (list of lines, `None`) or (`None`, why it is skipped).

    Yields:
        Lists of lines, each with how many were skipped after them, and why.
    """
    lines, skipped = [], {}
    for part, reason in parts:
        if reason:
            skipped[reason] = skipped.get(reason, 0) + 1
            continue
        if skipped:
            yield lines, skipped
            lines, skipped = [], {}
        lines += part
    yield lines, skipped
