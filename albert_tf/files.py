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
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from albert_tf.locks import lock_beside, locked, remove_unneeded
from albert_tf.writing_errors import ADVICE, TEMPORARY, name_final_path
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
# Directories in a temporary one: for new files, and for those that they replace until
# all are in their places.
NEW, FORMER = "new", "former"
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
def complete_directory(
    path: str | os.PathLike, replaced: Iterable[str] = ()
) -> Iterator[pathlib.Path]:
    """Yield a temporary directory, whose files get their final names at the end.

    If the final directory exists, its other files remain, except those named in
    `replaced`. If the block or a renaming raises, nothing has changed.
    """
    path = pathlib.Path(path)
    check_directory(path)
    if _is_temporary(path):
        path.mkdir(exist_ok=True)
        yield path
        return
    with temporary_directory(path) as folder:
        new = folder / NEW
        new.mkdir()
        # So that a model card does not replace that of a person.
        if (path / "README.md").is_file():
            shutil.copy(path / "README.md", new)
        yield new
        new.chmod(0o755)
        exchange(new, path, replaced)


@contextlib.contextmanager
def temporary_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield a new directory beside a path, without those of killed processes.

    At the end it is removed, unless former files in it could not be put back.
    """
    with name_final_path(path), contextlib.ExitStack() as stack:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path.parent, glob.escape(path.name))
        folder = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        # Locked before it exists, so that no process takes it for abandoned. Another
        # process that looks for abandoned ones may hold the lock for a moment.
        stack.enter_context(locked(lock_beside(folder), path, blocking=True))
        folder.mkdir()
        stack.callback(_remove_temporary, folder)
        yield folder


def remove_abandoned(parent: pathlib.Path, pattern: str) -> None:
    """Remove the temporary directories that killed processes left for some names.

    An exchange of files that has begun is completed. A former directory without a new
    one gets its name again.
    """
    found = parent.glob(f".{pattern}.*.part*")
    for name in {x.name.removesuffix(".lock") for x in found}:
        abandoned = parent / name
        with contextlib.suppress(OSError), locked(lock_beside(abandoned), abandoned):
            final = parent / name[1:].rsplit(".", 2)[0]
            if (abandoned / FORMER).exists():
                _complete_exchange(abandoned, final)
            remove_unneeded(abandoned)


def _is_temporary(path: pathlib.Path) -> bool:
    """Return whether a path is in a directory that is complete or absent as a whole."""
    return any(TEMPORARY.fullmatch(part) for part in path.parts)


def _remove_temporary(folder: pathlib.Path) -> None:
    """Remove a temporary directory that has no former files."""
    if not any(x.is_file() for x in (folder / FORMER).rglob("*")):
        remove_unneeded(folder)


# === Files that belong together ===


def exchange(
    new: pathlib.Path, final: pathlib.Path, replaced: Iterable[str] = ()
) -> None:
    """Move the files of a new directory into the final one, all of them or none.

    The files of these names, and of those in `replaced`, are kept in the directory
    `former` beside the new one until all new files have their names. After an error
    they are put back. Other files of the final directory are not touched.
    """
    if final.exists() and not any(final.iterdir()):
        # Windows replaces no directory. A mount point stays.
        with contextlib.suppress(OSError):
            final.rmdir()
    if not final.exists():
        os.replace(new, final)
        return
    former = new.with_name(FORMER)
    names = [x.relative_to(new) for x in sorted(new.rglob("*")) if not x.is_dir()]
    # Without these files a checkpoint is incomplete, and is not loaded: they are the
    # first to go and the last to come, so that a killed process leaves no mixture.
    names.sort(key=_is_needed)
    with _undone_after_error(final, former) as undo:
        for name in [*reversed(names), *map(pathlib.Path, replaced)]:
            if (final / name).exists():
                _move(final / name, former / name, undo)
        for name in names:
            _move(new / name, final / name, undo)
        for folder in filter(pathlib.Path.is_dir, new.rglob("*")):
            _make_directory(final / folder.relative_to(new), undo)
    remove_unneeded(former)


def exchange_directory(new: pathlib.Path, final: pathlib.Path) -> None:
    """Replace a directory by a new one as a whole, as `exchange` does its files."""
    former = new.with_name(FORMER)
    with _undone_after_error(final, former) as undo:
        if final.exists():
            _move(final, former, undo)
        _move(new, final, undo)
    remove_unneeded(former)


def _is_needed(name: pathlib.Path) -> bool:
    """Return whether a checkpoint is not loaded without a file."""
    return name.name == "config.json" or name.suffix == ".index"


def _move(
    source: pathlib.Path, target: pathlib.Path, undo: contextlib.ExitStack
) -> None:
    """Rename a file, and make the directories for it."""
    _make_directory(target.parent, undo)
    os.replace(source, target)
    undo.callback(os.replace, target, source)


def _make_directory(path: pathlib.Path, undo: contextlib.ExitStack) -> None:
    """Make a directory and those above it."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir()
            undo.callback(_remove_empty, folder)


def _remove_empty(folder: pathlib.Path) -> None:
    """Remove a directory unless somebody put files into it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def _undone_after_error(
    final: pathlib.Path, former: pathlib.Path
) -> Iterator[contextlib.ExitStack]:
    """Yield a stack of what undoes the block, which is called if it raises."""
    undo = contextlib.ExitStack()
    try:
        yield undo
    except BaseException:
        try:
            undo.close()
        except OSError as error:
            raise AlbertError(
                f"{final} is incomplete, because its former files could not be put "
                f"back: {error.strerror}. They are in {former}. Write {final} again, "
                "or move them there."
            ) from error
        raise


def _complete_exchange(abandoned: pathlib.Path, final: pathlib.Path) -> None:
    """Complete the exchange that a killed process had begun."""
    new, former = abandoned / NEW, abandoned / FORMER
    if not final.exists():
        (new if new.exists() else former).rename(final)
    elif new.exists():
        exchange(new, final)


@contextlib.contextmanager
def complete_file(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yield the path of a temporary file, which gets its final name at the end.

    If the block raises, the final file has not changed.
    """
    path = pathlib.Path(path)
    if _is_temporary(path):
        yield path
        return
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
    folder = next(x for x in (full, *full.parents) if x.is_dir())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"No space left on device: {needed / 1e6:.1f} MB are needed, "
            f"{free / 1e6:.1f} MB are free. Free space and try again.",
            str(path),
        )
    # The user may have a quota, or a limit of the size of files.
    try:
        _reserve(folder, needed)
    except OSError as error:
        if error.errno not in ADVICE:
            # Some file systems cannot reserve space.
            return
        raise OSError(
            error.errno,
            f"{error.strerror}: {needed / 1e6:.1f} MB are needed. "
            f"{ADVICE[error.errno]}.",
            str(path),
        ) from error


def _reserve(folder: pathlib.Path, size: int) -> None:
    """Reserve space for a moment, where the operating system can."""
    if hasattr(os, "posix_fallocate"):
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, max(size, 1))


def remove_directory(path: pathlib.Path) -> None:
    """Remove a directory, which is complete or absent."""
    with temporary_directory(path) as folder:
        path.rename(folder / path.name)


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
