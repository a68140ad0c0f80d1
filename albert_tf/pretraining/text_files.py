"""Find the text files of a corpus and read their lines."""

import codecs
import collections
import glob
import gzip
import io
import os
import pathlib
import types
from collections.abc import Callable, Iterable, Iterator

from albert_tf_lite.errors import AlbertError, MissingPackageError

ZSTD_ENDINGS = (".zst", ".zstd")
COMPRESSED_ENDINGS = (".gz", *ZSTD_ENDINGS)
REFUSED_ENDINGS = (
    *(".tar", ".tar.gz", ".tar.zst", ".tgz", ".zip", ".7z", ".rar"),
    *(".bz2", ".xz", ".lz4", ".parquet", ".arrow"),
)
_CHUNK = 2**18
# A zstd block of 128 kB may take 4 bytes. Pieces of this size decompress to at most
# 4 MB, even from a decompression bomb.
_ZSTD_PIECE = 128
# `zstd --long=31`, as used for dumps of forums; the default reads windows up to 2**27.
_ZSTD_WINDOW = 2**31
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def find_files(
    patterns: str | os.PathLike | Iterable[str | os.PathLike],
    is_excluded: Callable[[pathlib.Path], bool],
) -> list[pathlib.Path]:
    """Return the files of paths and patterns, sorted by name, each once.

    `is_excluded` receives the resolved path of each file that a pattern matches.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [patterns]
    paths = [x for pattern in patterns for x in _matches(str(pattern), is_excluded)]
    if not paths:
        raise AlbertError("No text to read: `files` is empty. Name at least one file.")
    files: dict[str, pathlib.Path] = {}
    for path in sorted(paths, key=pathlib.Path.as_posix):
        _check(path)
        # Keep the first of several names, such as links, of one file.
        files.setdefault(os.path.realpath(path), path)
    return list(files.values())


def _matches(
    pattern: str, is_excluded: Callable[[pathlib.Path], bool]
) -> list[pathlib.Path]:
    # The name of a file may contain brackets.
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [pathlib.Path(pattern)]
    found = map(pathlib.Path, glob.glob(pattern, recursive=True))
    files = [x for x in found if not x.is_dir() and not is_excluded(x.resolve())]
    if not files:
        raise FileNotFoundError(
            f"No text file matches the pattern {printable(pattern)}. To search all "
            "subfolders use folder/**/*.txt. Vocabularies and the files in a "
            "directory of records are left out."
        )
    return files


def _check(path: pathlib.Path) -> None:
    name = printable(path)
    if path.is_dir():
        raise IsADirectoryError(
            f"{name} is a folder. Name the files in it: {name}/**/*.txt"
        )
    if not path.is_file():
        raise FileNotFoundError(f"The file {name} does not exist.")
    if path.name.lower().endswith(REFUSED_ENDINGS):
        raise AlbertError(
            f"{name} is an archive or has an unsupported compression. Unpack it or "
            "leave it out. Supported are text and JSON lines, uncompressed or as "
            f"{', '.join(COMPRESSED_ENDINGS)}."
        )
    # Report a file without read permission now instead of hours later.
    path.open("rb").close()
    if endings(path)[1] in ZSTD_ENDINGS:
        _import_zstandard(path)


def endings(path: pathlib.Path) -> tuple[str, str]:
    """Return the endings for kind and compression, such as `(".jsonl", ".gz")`."""
    *_, first, last = ("", "", *path.suffixes)
    first, last = first.lower(), last.lower()
    return (first, last) if last in COMPRESSED_ENDINGS else (last, "")


def _import_zstandard(path: pathlib.Path) -> types.ModuleType:
    try:
        import zstandard
    except ImportError as error:
        raise MissingPackageError(
            f"Reading {printable(path)} needs zstandard. Run: "
            "pip install 'albert-tf[fast]'"
        ) from error
    return zstandard


def printable(path: str | os.PathLike) -> str:
    """Return a name that can be printed: names unzipped from GBK have surrogates."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def read_lines(
    path: pathlib.Path,
    file: io.BufferedReader,
    max_line_bytes: int,
    skipped: collections.Counter,
) -> Iterator[list[str]]:
    """Yield lists of lines of a file, decompressed, decoded and stripped.

    Lines that are "not_utf8" or "too_long" are counted in `skipped`. A damaged file
    ends with an `OSError`, `EOFError` or `zlib.error`.
    """
    is_utf16 = False
    for number, data in enumerate(_whole_lines(_chunks(path, file), max_line_bytes)):
        if number == 0:
            # Without this check western text in UTF-16 is valid UTF-8 with NULs.
            is_utf16 = data.startswith(_UTF16)
            data = data.removeprefix(codecs.BOM_UTF8)
        if is_utf16:
            skipped["not_utf8"] += data.count(b"\n") + 1
        else:
            yield list(_decoded(data, max_line_bytes, skipped))


def _chunks(path: pathlib.Path, file: io.BufferedReader) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file."""
    compression = endings(path)[1]
    if compression in ZSTD_ENDINGS:
        yield from _zstd_chunks(_import_zstandard(path), file)
        return
    # At a damage `read` loses the bytes before it; `read1` does not.
    read = gzip.GzipFile(fileobj=file).read1 if compression else file.read1
    while chunk := read(_CHUNK):
        yield chunk


def _zstd_chunks(
    zstandard: types.ModuleType, file: io.BufferedReader
) -> Iterator[bytes]:
    # `stream_reader` does not report a truncated file.
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


def _whole_lines(chunks: Iterable[bytes], max_line_bytes: int) -> Iterator[bytearray]:
    """Yield bytes that end where a line ends, without its newline.

    A line longer than the limit may lose its end.
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


def _decoded(
    data: bytearray, max_line_bytes: int, skipped: collections.Counter
) -> Iterator[str]:
    for line in data.split(b"\n"):
        if len(line) > max_line_bytes:
            skipped["too_long"] += 1
            continue
        try:
            yield line.decode().strip()
        except UnicodeDecodeError:
            skipped["not_utf8"] += 1
