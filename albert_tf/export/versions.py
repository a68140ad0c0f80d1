"""Directories `NAME/VERSION`, which are complete or absent.

A server loads every directory whose name is a number.
"""

import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Callable

import tensorflow as tf

from albert_tf_lite.errors import AlbertError

# The files and directories of an export.
_EXPORTED = {
    *("saved_model.pb", "fingerprint.pb", "variables", "assets", "assets.extra"),
    *("README.md", "labels.json"),
}


def write_version(
    directory: str | os.PathLike,
    version: int | str | None,
    write: Callable[[pathlib.Path], None],
) -> pathlib.Path:
    """Write a directory that gets its final name in one step at the end.

    `directory` and `version` are those of `albert_tf.export.saved_model`. `write` is
    called with the path of an empty directory, whose name is not a number.
    """
    directory = pathlib.Path(directory)
    if version is None:
        _check_is_export(directory)
    elif version != "next":
        _check_is_free(directory, version)
    parent = directory.parent if version is None else directory
    parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(
        tempfile.mkdtemp(prefix=".export.", suffix=".part", dir=parent)
    )
    try:
        write(temporary)
        temporary.chmod(0o755)
        if version is None:
            _replace(temporary, directory)
            return directory
        return _rename(temporary, directory, version)
    except FileExistsError:
        raise
    except (OSError, tf.errors.OpError) as error:
        reason = str(getattr(error, "message", None) or error).splitlines()[0]
        # Remove the names of TensorFlow's functions.
        reason = re.sub(r"^\{\{.*?\}\} ?| \[Op:.*?\]", "", reason)
        raise OSError(
            f"{directory} could not be written: {reason}. Nothing was changed."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def versions(directory: str | os.PathLike) -> list[int]:
    """Return the versions of a model in ascending order."""
    folder = pathlib.Path(directory)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def _check_is_export(directory):
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"{directory} is a file. Choose another directory.")
    found = set(os.listdir(directory)) if directory.exists() else set()
    if others := sorted(found - _EXPORTED):
        raise FileExistsError(
            f"{directory} holds files that are not of an export: {', '.join(others)}. "
            "Move them, or choose another directory."
        )


def _replace(source, target):
    _check_is_export(target)
    former = source.with_suffix(".former")
    if not target.exists():
        os.rename(source, target)
        return
    os.rename(target, former)
    try:
        os.rename(source, target)
    except OSError:
        os.rename(former, target)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _check_is_free(directory, version):
    if not isinstance(version, int) or version < 0:
        raise AlbertError(
            f'`version` must be a number from 0, or "next". Received: {version!r}'
        )
    existing = versions(directory)
    if version in existing:
        raise FileExistsError(
            f"{directory} has version {version}, which is never replaced. Use "
            f'{existing[-1] + 1}, or version="next".'
        )


def _rename(temporary, directory, version):
    """Rename to the version, or to the next one that no other process takes."""
    while True:
        number = version
        if version == "next":
            number = max(versions(directory), default=0) + 1
        path = directory / str(number)
        try:
            # This fails for a directory that is not empty, and so replaces nothing.
            os.rename(temporary, path)
            return path
        except OSError:
            if version != "next" or not path.exists():
                raise
