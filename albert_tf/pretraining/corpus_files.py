"""Finding the files of a corpus: patterns, endings, and what cannot be read."""

import glob
import os
import pathlib

from albert_tf_lite.errors import AlbertError

ZSTD_ENDINGS = (".zst", ".zstd")
COMPRESSED_ENDINGS = (".gz", *ZSTD_ENDINGS)
REFUSED_ENDINGS = (
    *(".tar", ".tar.gz", ".tar.zst", ".tgz", ".zip", ".7z", ".rar"),
    *(".bz2", ".xz", ".lz4", ".parquet", ".arrow"),
)


def find_files(patterns, without):
    """The files that paths and patterns name, in the order of their names, each once.

    Files that a pattern matches are left out if `without` says so of their path,
    absolute and without links.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [patterns]
    paths = sorted(
        (path for pattern in patterns for path in _matches(str(pattern), without)),
        key=pathlib.Path.as_posix,
    )
    if not paths:
        raise AlbertError("No text to read: `files` is empty. Name at least one file.")
    for path in paths:
        _check(path)
    # Of several names of one file, links among them, the first.
    files = {}
    for path in paths:
        files.setdefault(os.path.realpath(path), path)
    return list(files.values())


def _matches(pattern, without):
    # A file may have brackets in its name.
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [pathlib.Path(pattern)]
    found = map(pathlib.Path, glob.glob(pattern, recursive=True))
    files = [x for x in found if not x.is_dir() and not without(x.resolve())]
    if not files:
        raise FileNotFoundError(
            f"No file of text matches the pattern {printable(pattern)}. (For the files "
            "of all folders below one: folder/**/*.txt. Vocabularies, and what is in a "
            "directory of records, are left out.)"
        )
    return files


def _check(path):
    name = printable(path)
    if path.is_dir():
        raise IsADirectoryError(
            f"{name} is a folder. Name the files in it: {name}/**/*.txt"
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {name}.")
    if path.name.lower().endswith(REFUSED_ENDINGS):
        raise AlbertError(
            f"{name} is an archive, or of a compression that is not read. Unpack it, "
            "or leave it out. Read are text and JSON lines, as they are or as "
            f"{', '.join(COMPRESSED_ENDINGS)}."
        )
    # Now, not after hours: whether it may be read.
    path.open("rb").close()
    if endings(path)[1] in ZSTD_ENDINGS:
        import_zstandard(path)


def endings(path):
    """What kind of text it is, and how it is compressed: `(".jsonl", ".gz")`."""
    *_, first, last = ("", "", *path.suffixes)
    first, last = first.lower(), last.lower()
    return (first, last) if last in COMPRESSED_ENDINGS else (last, "")


def import_zstandard(path):
    """The module that decompresses a file, an extra."""
    try:
        import zstandard
    except ImportError as error:
        raise AlbertError(
            f"Reading {printable(path)} needs zstandard. Run: "
            "pip install 'albert-tf[fast]'"
        ) from error
    return zstandard


def printable(path):
    """A name that can be printed: one unzipped from GBK has halves of surrogates."""
    return str(path).encode("utf-8", "backslashreplace").decode()
