"""The files of a data set in a directory, in a zip archive, or by themselves."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import os
import pathlib
import zipfile
from collections.abc import Iterator, Sequence

from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class File:
    """A file of a data set; `path` is a `pathlib.Path` or a `zipfile.Path`."""

    path: pathlib.Path | zipfile.Path

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> bytes:
        """What is in it, without a byte order mark."""
        return self.path.read_bytes().removeprefix(b"\xef\xbb\xbf")

    def beside(self, ending: str) -> File | None:
        """The file beside it of the same name and an ending; `None` without it."""
        stem, dot, suffix = self.path.name.rpartition(".")
        other = self.path.parent / f"{stem}{ending}{dot}{suffix}"
        return File(other) if other.is_file() else None


@contextlib.contextmanager
def open_files(
    path: str | os.PathLike, patterns: Sequence[str], name: str
) -> Iterator[list[File]]:
    """The files of a split.

    Args:
        path: a directory or a zip archive, in which they are looked for, or a file.
        patterns: names of files as for `fnmatch`, all of which are wanted; or several
            with `|` between them, of which the first that is there is.
        name: the data set, after which the folder may be called, of several with files
            of these names.

    Raises:
        FileNotFoundError: if none is there.
        AlbertError: if there are several of a name, or the archive is damaged.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        yield _found(path, patterns, name)
    elif path.is_file() and path.suffix.lower() == ".zip":
        try:
            archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise AlbertError(
                f"{path} is damaged, or no zip archive: {error}"
            ) from None
        with archive:
            yield _found(zipfile.Path(archive), patterns, name)
    elif path.is_file():
        yield [File(path)]
    else:
        raise FileNotFoundError(f"There is no directory, archive or file {path}.")


def _found(root, patterns, name):
    files = list(_walk(root))
    wanted = [_matching(root, files, pattern, name) for pattern in patterns]
    found = [File(path) for path in wanted if path is not None]
    if not found:
        names = sorted(path.name for path in files)
        raise FileNotFoundError(
            f"{root} holds no {' or '.join(patterns)}. Found: {names[:10]}"
        )
    return found


def _walk(folder):
    for path in folder.iterdir():
        # What macOS leaves in archives has the names of the files.
        if path.name.startswith(".") or path.name == "__MACOSX":
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def _matching(root, files, pattern, name):
    """The file for a pattern: of those in a folder of the name, the least deep one."""
    for alternative in pattern.split("|"):
        found = [x for x in files if fnmatch.fnmatch(x.name.lower(), alternative)]
        below = {x: str(x)[len(str(root)) :].replace("\\", "/").lower() for x in found}
        named = [x for x in found if name in below[x].rpartition("/")[0]] or found
        least = min((below[x].count("/") for x in named), default=0)
        named = [x for x in named if below[x].count("/") == least]
        if len(named) > 1:
            raise AlbertError(
                f"{root} holds several files for {name}: {sorted(map(str, named))}. "
                "Give the folder of one, or the file."
            )
        if named:
            return named[0]
    return None
