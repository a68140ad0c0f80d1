"""Find the files of a corpus, and refuse those that cannot be read."""

import contextlib
import glob
import os
import pathlib
import zlib
from collections.abc import Iterable

from albert_tf.data.files.compression import (
    COMPRESSED_ENDINGS,
    ZSTD_ENDINGS,
    byte_chunks,
    endings,
)
from albert_tf.data.files.text_lines import check_kind
from albert_tf.extras import import_extra
from albert_tf.pretraining.records.records_directory import MANIFEST
from albert_tf.pretraining.records.shard_files import CHECKSUMS
from albert_tf_lite.errors import AlbertError

ARCHIVES = {".zip", ".tar", ".tgz", ".bz2", ".xz", ".7z", ".rar"}


def find_files(
    patterns: str | os.PathLike | Iterable[str | os.PathLike],
    excluded: set[pathlib.Path],
) -> list[pathlib.Path]:
    """Return the files of paths and patterns, sorted by name, each once.

    Patterns leave out the paths in `excluded`, and records.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [patterns]
    paths: list[pathlib.Path] = []
    for pattern in patterns:
        paths += _matches(str(pattern), excluded)
    if not paths:
        raise AlbertError("No text to read: `files` is empty. Name at least one file.")
    files: dict[str, pathlib.Path] = {}
    for path in sorted(paths, key=pathlib.Path.as_posix):
        _check_readable(path)
        # Keep the first of several names, such as links, of one file.
        files.setdefault(os.path.realpath(path), path)
    return list(files.values())


def printable(path: str | os.PathLike) -> str:
    """Return a name that can be printed: names unzipped from GBK have surrogates."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _matches(pattern: str, excluded: set[pathlib.Path]) -> list[pathlib.Path]:
    # The name of a file may contain brackets.
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [pathlib.Path(pattern)]
    paths = map(pathlib.Path, glob.glob(pattern, recursive=True))
    files = [path for path in paths if path.is_file() and _is_text(path, excluded)]
    if not files:
        raise FileNotFoundError(
            f"No text file matches the pattern {printable(pattern)}. To search all "
            "subfolders use folder/**/*.txt. The vocabulary and directories of records "
            "are left out."
        )
    return files


def _is_text(path: pathlib.Path, excluded: set[pathlib.Path]) -> bool:
    """Return whether a file is neither excluded nor a part of records."""
    if path.resolve() in excluded or path.resolve().parent in excluded:
        return False
    is_record = (path.parent / MANIFEST).exists() or (path.parent / CHECKSUMS).exists()
    return not is_record


def _check_readable(path: pathlib.Path) -> None:
    if {suffix.lower() for suffix in path.suffixes[-2:]} & ARCHIVES:
        raise AlbertError(
            f"{printable(path)} is an archive or has an unsupported compression. "
            f"Unpack it or leave it out. Supported are {', '.join(COMPRESSED_ENDINGS)}."
        )
    if endings(path)[1] in ZSTD_ENDINGS:
        import_extra("zstandard")
    # Report a file that is missing, not readable or no text now instead of hours later.
    with path.open("rb") as file, contextlib.suppress(OSError, EOFError, zlib.error):
        check_kind(printable(path), next(byte_chunks(file), b""), "utf-8")
