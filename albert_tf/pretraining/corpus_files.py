"""Finding the files of a corpus: patterns, endings, and what cannot be read."""

import glob
import os
import pathlib

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
    paths = [
        path for pattern in patterns for path in _matches(os.fspath(pattern), without)
    ]
    if not paths:
        raise ValueError("No text to read: `files` is empty. Name at least one file.")
    for path in paths:
        _check(path)
    paths = sorted(paths, key=pathlib.Path.as_posix)
    # Of several names of one file, links among them, the first.
    files = {os.path.realpath(path): path for path in reversed(paths)}
    return [path for path in paths if files[os.path.realpath(path)] is path]


def _matches(pattern, without):
    # A file may have brackets in its name.
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [pathlib.Path(pattern)]
    found = map(pathlib.Path, glob.glob(pattern, recursive=True))
    found = [path for path in found if not os.path.isdir(path)]
    files = [path for path in found if not without(path.resolve())]
    if found and not files:
        raise FileNotFoundError(
            f"All files that match the pattern {printable(pattern)} are left out: "
            "vocabularies, and what is in a directory of records. Name the files of "
            "text, and another directory for the records."
        )
    if not files:
        raise FileNotFoundError(
            f"No file matches the pattern {printable(pattern)}. (For the files of all "
            "folders below one: folder/**/*.txt)"
        )
    return files


def _check(path):
    name = printable(path)
    if os.path.isdir(path):
        raise IsADirectoryError(
            f"{name} is a folder. Name the files in it: {name}/**/*.txt"
        )
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{name} is a pipe or a device. Only files are read.")
    if path.name.lower().endswith(REFUSED_ENDINGS):
        raise ValueError(
            f"{name} is an archive, or of a compression that is not read. Unpack it, "
            "or leave it out. Read are text and JSON lines, as they are or as "
            f"{', '.join(COMPRESSED_ENDINGS)}."
        )
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {name}.") from None
    except OSError as error:
        raise type(error)(f"{name} cannot be read: {error.strerror}.") from None
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
        raise ValueError(
            f"Reading {printable(path)} needs zstandard. Run: "
            "pip install 'albert-tf[fast]'"
        ) from error
    return zstandard


def printable(path):
    """A name that can be printed: one unzipped from GBK has halves of surrogates."""
    return str(path).encode("utf-8", "backslashreplace").decode()
