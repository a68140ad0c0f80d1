"""`NAME/VERSION/`, complete or absent: a server loads whatever has a number."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Iterator

import tensorflow as tf

from albert_tf.files import complete_directory, make_folder
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass
class Written:
    """A directory that is being written.

    Attributes:
        temporary: where to write; its name is no number.
        path: where it stands afterwards.
    """

    temporary: pathlib.Path
    path: pathlib.Path


@contextlib.contextmanager
def written_directory(
    directory: str | os.PathLike, version: int | str | None = None
) -> Iterator[Written]:
    """A `Written`, which gets its name in one step when all is written.

    Args:
        directory: the directory itself; with `version` the one it is in.
        version: optional int from 0, or `"next"`.

    Raises:
        FileExistsError: if there is such a version, or a file in the way.
        AlbertError: if `version` is none.
    """
    directory = pathlib.Path(directory)
    if version is None:
        with complete_directory(directory) as temporary:
            yield Written(temporary, directory)
        return
    if version != "next":
        _check_is_free(directory, version)
    make_folder(directory)
    temporary = tempfile.mkdtemp(prefix=".export.", suffix=".part", dir=directory)
    written = Written(pathlib.Path(temporary), directory)
    try:
        yield written
        written.temporary.chmod(0o755)
        written.path = _named(written.temporary, directory, version)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def versions(directory: str | os.PathLike) -> list[int]:
    """The versions of a model, from low to high, as a server finds them by name."""
    folder = pathlib.Path(directory)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def _check_is_free(directory, version):
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise AlbertError(
            f'`version` must be a number from 0, or "next". Received: {version!r}'
        )
    there = versions(directory)
    if version in there:
        raise FileExistsError(
            f"{directory} has version {version}, which is never replaced. Take "
            f'{there[-1] + 1}, or version="next".'
        )


def _named(temporary, directory, version):
    """Rename to the version; to the next one, whoever else writes there."""
    while True:
        if version == "next":
            number = max(versions(directory), default=0) + 1
        else:
            _check_is_free(directory, version)
            number = version
        path = directory / str(number)
        try:
            # Of a directory that is not empty this fails, and replaces nothing.
            os.rename(temporary, path)
            return path
        except OSError:
            if not path.exists():
                raise


@contextlib.contextmanager
def plain_errors(directory: str | os.PathLike) -> Iterator[None]:
    """One clear `OSError` for all that TensorFlow says where it cannot write."""
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, tf.errors.OpError) as error:
        folder = pathlib.Path(directory).absolute()
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        reason = str(getattr(error, "message", None) or error).splitlines()[0]
        # Without the names of TensorFlow's functions.
        reason = re.sub(r"^\{\{.*?\}\} ?| \[Op:.*?\]", "", reason)
        raise OSError(
            f"{directory} could not be written: {reason}. {free / 1e6:,.1f} MB are "
            "free there; make room or take another disk. Nothing was left behind."
        ) from error
