"""Write files and directories that are complete or absent."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import importlib.resources
import json
import math
import os
import pathlib
import re
import secrets
import shutil
import string
from collections.abc import Iterable, Iterator
from typing import Any

import filelock
import numpy as np

from albert_tf_lite.errors import AlbertError, first_line
from albert_tf_lite.pointers import read_bytes

# The folder in an output directory with the state of an unfinished training.
BACKUP = ".training"
# Suffixes of files, which are mistakes in the name of a directory.
_FILE_SUFFIXES = (
    ".bin",
    ".ckpt",
    ".gz",
    ".h5",
    ".html",
    ".json",
    ".keras",
    ".npz",
    ".onnx",
    ".pb",
    ".pt",
    ".pth",
    ".safetensors",
    ".tar",
    ".tflite",
    ".tgz",
    ".zip",
)
# Our own checkpoints, by their names: in a checkout and in an installed package.
BUNDLED = ("albert_micro_zh",)
# Begins the address of a checkpoint on the Hugging Face Hub.
HUB = "hf://"
# The name of a head, and a checkpoint with one of its named heads.
HEAD_NAME = "[A-Za-z0-9_-]+"
_WITH_HEAD = re.compile(f"(.+):({HEAD_NAME})")


def read_releases() -> dict[str, dict[str, Any]]:
    """Return the table of released checkpoints by name, without importing Keras."""
    file = pathlib.Path(__file__).parent / "checkpoints" / "releases.json"
    return json.loads(file.read_text("utf-8"))["releases"]


def find_bundled(name: str | os.PathLike) -> pathlib.Path | None:
    """Return the directory of a checkpoint that comes with the package, by its name.

    A path of that name is preferred: then, as for other names, the result is `None`.
    """
    if os.fspath(name) not in BUNDLED or os.path.exists(name):
        return None
    package = pathlib.Path(__file__).parent
    folders = (package.parent / "examples" / name, package / "bundled" / name)
    return next(filter(pathlib.Path.is_dir, folders), None)


def split_head(path: str | os.PathLike) -> tuple[str | os.PathLike, str | None]:
    """Return a checkpoint and the head named after it, as in `"my_model:entities"`.

    An existing path of that name is preferred. What precedes the colon must be a
    checkpoint, so that the drive in `C:model` is none.
    """
    text = os.fspath(path)
    match = _WITH_HEAD.fullmatch(text)
    if match is None or _is_path(text):
        return path, None
    name, head = match.groups()
    is_known = name in BUNDLED or name.startswith(HUB) or name in read_releases()
    if is_known or _is_path(name):
        return name, head
    return path, None


def _is_path(text: str) -> bool:
    return os.path.exists(text) or os.path.exists(f"{text}.index")


def bundled_heads(name: str) -> list[str]:
    """Return the named heads of a checkpoint that comes with the package."""
    folder = find_bundled(name)
    configs = folder.glob("*config.json") if folder else ()
    fields: dict[str, Any] = {}
    for file in configs:
        fields.update(json.loads(file.read_text("utf-8")))
    return [*fields.get("heads", {})]


def check_directory(path: str | os.PathLike) -> None:
    """Raise if a path cannot be that of an output directory."""
    path = pathlib.Path(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(
            f"{path} is a file, not a directory. Remove it or choose another name."
        )
    if path.suffix.lower() in _FILE_SUFFIXES and not path.exists():
        raise AlbertError(
            f"{path} has the suffix of a file, but a directory is written. Choose a "
            f"name such as {path.with_suffix('')}."
        )


def check_replaced(path: str | os.PathLike, suffix: str) -> None:
    """Raise if a file to write would replace one of another kind, by its suffix."""
    path = pathlib.Path(path)
    if path.exists() and path.suffix.lower() != suffix:
        raise FileExistsError(
            f"{path} exists, and does not end in {suffix}. Choose another path."
        )


@contextlib.contextmanager
def complete_directory(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yield a temporary directory, which gets its final name at the end of the block.

    If the final directory exists, its other files remain. If the block raises, nothing
    has changed.
    """
    path = pathlib.Path(path)
    check_directory(path)
    with temporary_directory(path) as folder:
        # So that a model card does not replace that of a person.
        if (path / "README.md").is_file():
            shutil.copy(path / "README.md", folder)
        yield folder
        folder.chmod(0o755)
        _move(folder, path)


@contextlib.contextmanager
def temporary_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield a new directory beside a path; remove those of killed processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent, glob.escape(path.name))
    with name_final_path(path), contextlib.ExitStack() as stack:
        folder = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        # Locked before it exists, so that no process takes it for abandoned. Another
        # process that looks for abandoned ones may hold the lock for a moment.
        stack.enter_context(_locked(_lock_beside(folder), path, blocking=True))
        folder.mkdir()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def remove_abandoned(parent: pathlib.Path, pattern: str) -> None:
    """Remove the temporary directories that killed processes left for some names.

    An entry `former`, which was being replaced, gets its name again.
    """
    found = parent.glob(f".{pattern}.*.part*")
    for name in {x.name.removesuffix(".lock") for x in found}:
        abandoned = parent / name
        with contextlib.suppress(OSError), _locked(_lock_beside(abandoned), abandoned):
            final = parent / name[1:].rsplit(".", 2)[0]
            if not final.exists() and (abandoned / "former").exists():
                (abandoned / "former").rename(final)
            shutil.rmtree(abandoned)


@contextlib.contextmanager
def name_final_path(path: str | os.PathLike) -> Iterator[None]:
    """Name the final path in errors about temporary files."""
    try:
        yield
    except OSError as error:
        # A write to a full disk names no file.
        names_other_file = error.filename and ".part" not in str(error.filename)
        if error.errno is None or names_other_file:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _move(source, target):
    """Rename a directory, or move its files into the target if that has others."""
    if target.exists() and not any(target.iterdir()):
        # Windows replaces no directory. A mount point stays.
        with contextlib.suppress(OSError):
            target.rmdir()
    if not target.exists():
        os.replace(source, target)
        return
    # Without these files a checkpoint is incomplete, and is not loaded.
    needed = {*source.glob("config.json"), *source.glob("*.index")}
    for file in needed:
        (target / file.name).unlink(missing_ok=True)
    for entry in sorted(source.rglob("*"), key=lambda x: (x in needed, x)):
        name = target / entry.relative_to(source)
        if entry.is_dir():
            name.mkdir(exist_ok=True)
        else:
            os.replace(entry, name)


@contextlib.contextmanager
def complete_file(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yield the path of a temporary file, which gets its final name at the end.

    If the block raises, the final file has not changed.
    """
    path = pathlib.Path(path)
    # One for each process, because several may write the same file.
    with temporary_directory(path) as folder:
        yield folder / path.name
        os.replace(folder / path.name, path)


def check_space(path: str | os.PathLike, variables: Iterable[Any]) -> None:
    """Raise if the disk of a path has no room for a file of Keras variables.

    HDF5 crashes the process when it closes a file on a full disk.
    """
    # The structure of the file takes up to 4 kB per variable.
    needed = sum(
        math.prod(x.shape) * np.dtype(x.dtype).itemsize + 4000 for x in variables
    )
    full = pathlib.Path(path).absolute()
    existing = next(x for x in (full, *full.parents) if x.exists())
    free = shutil.disk_usage(existing).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"No space left on device: {needed / 1e6:.1f} MB are needed, "
            f"{free / 1e6:.1f} MB are free. Free space and try again.",
            str(path),
        )


def remove_directory(path: pathlib.Path) -> None:
    """Remove a directory, which is complete or absent."""
    with temporary_directory(path) as folder:
        path.rename(folder / path.name)


def only_writer(path: str | os.PathLike) -> contextlib.AbstractContextManager[None]:
    """Lock a file or directory against other processes of this machine.

    The operating system releases the lock of a killed process.
    """
    path = pathlib.Path(path)
    # Inside a directory, because the directory above may be read-only.
    lock_file = path / ".lock" if path.is_dir() else _lock_beside(path)
    return _locked(lock_file, path)


def _lock_beside(path):
    """Return the lock file of a path that may be renamed while it is locked.

    Windows renames no directory that has an open file in it.
    """
    return path.with_name(f"{path.name}.lock")


@contextlib.contextmanager
def _locked(lock_file, path, blocking=False):
    """Hold a lock file, which is removed at the end."""
    lock = filelock.FileLock(lock_file)
    while not lock.is_locked:
        with open(lock_file, "ab") as file:
            try:
                lock.acquire(blocking=blocking)
            except filelock.Timeout:
                raise BlockingIOError(
                    f"Another process is writing to {path}. Wait until it ends, or "
                    "choose another output."
                ) from None
            # The last holder may have removed the file, and another process may have
            # created and locked a new one.
            if not _is_file_at(file, lock_file):
                lock.release()
    try:
        yield
    finally:
        # Windows removes it when the lock is released.
        with contextlib.suppress(OSError):
            lock_file.unlink()
        lock.release()


def _is_file_at(file, path):
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def file_digest(path: str | os.PathLike) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a UTF-8 file completely or not at all."""
    with complete_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_template(package: str, name: str) -> string.Template:
    """Return a text file with `$names` from the folder `templates` of a package."""
    file = importlib.resources.files(package).joinpath("templates", name)
    return string.Template(file.read_text("utf-8"))


def read_json(
    path: str | os.PathLike,
    kind: type,
    expected: str = "",
    error: type[AlbertError] = AlbertError,
) -> Any:
    """Return the content of a JSON file; raise an `error` if it is not of a `kind`.

    Args:
        path: the file.
        kind: `dict` or `list`.
        expected: optional string for the error, what the file should hold.
        error: the class of the error.
    """
    try:
        # Some editors on Windows write a byte order mark, which JSON does not allow.
        content = json.loads(read_bytes(path).decode("utf-8-sig"))
    except AlbertError:
        raise
    except (ValueError, RecursionError) as reason:
        raise error(f"{path} is not a JSON file: {first_line(reason)}.") from reason
    if not isinstance(content, kind):
        expected = expected or f"a JSON {'object' if kind is dict else 'list'}"
        raise error(f"{path} must hold {expected}. Found: {type(content).__name__}")
    return content


def write_json(path: str | os.PathLike, fields: dict | list) -> None:
    """Write an indented JSON file completely or not at all."""
    write_text(path, json.dumps(fields, ensure_ascii=False, indent=2) + "\n")


def decode_utf8(data: bytes, source: str | os.PathLike, hint: str) -> str:
    """Decode UTF-8 text with or without byte order mark.

    The error for other encodings names `source` and the line, and ends with `hint`.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise AlbertError(
            f"{source} is not UTF-8: byte {data[error.start]:#04x} in line {line}. "
            f"{hint}"
        ) from error
