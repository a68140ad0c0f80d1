"""Writing files so that they are complete or absent."""

import contextlib
import hashlib
import json
import os
import pathlib
import secrets
import shutil
import tempfile

from albert_tf_lite.errors import AlbertError

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None


# The folder of a training that is not done, in its output directory.
BACKUP = ".training"


@contextlib.contextmanager
def complete_directory(path):
    """A directory to write into, which gets its name only when all is written.

    Args:
        path: string or path, the final name. Files already there stay, but for
            those of the same name, which are replaced.

    Yields:
        The path of a temporary directory beside it. If the block raises, it is
        removed and nothing under the final name has changed.
    """
    path = pathlib.Path(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(
            f"{path} is a file; a directory is to be written under this name. "
            "Remove the file or choose another name."
        )
    make_folder(path.parent)
    temporary = pathlib.Path(
        tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    )
    try:
        yield temporary
        temporary.chmod(0o755)
        _move(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def make_folder(path):
    """Make a directory and those it is in, unless they are there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FileExistsError(
            f"The directory {path} cannot be made: it, or one that it is in, is a "
            "file. Choose another name."
        ) from None


def _move(source, target):
    """Rename `source` to `target`, or its files one by one into `target`."""
    if not target.exists():
        os.replace(source, target)
        return
    for entry in sorted(source.rglob("*")):
        name = target / entry.relative_to(source)
        if entry.is_dir():
            name.mkdir(exist_ok=True)
        else:
            os.replace(entry, name)


@contextlib.contextmanager
def complete_file(path):
    """A file to write, which gets its name only when all is written.

    Yields the path of a temporary file beside it. If the block raises, it is removed
    and what was under the final name is still there.
    """
    path = pathlib.Path(path)
    # Several may write the same file at a time: each its own.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def only_writer(directory):
    """Keep other processes of this machine from writing to a directory, too.

    It ends with the process, however that ends. On Windows it does nothing.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BlockingIOError(
            f"Another process is writing to {directory}. Wait until it has ended, or "
            "give another directory."
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def file_digest(path, progress=lambda count: None):
    """The SHA-256 of a file; `progress` is given how many bytes were read each time."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(2**24):
            digest.update(part)
            progress(len(part))
    return digest.hexdigest()


def write_text(path, text):
    """Write a UTF-8 file, complete or not at all."""
    with complete_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path, fields):
    """Write a JSON file for people to read, complete or not at all."""
    write_text(path, json.dumps(fields, ensure_ascii=False, indent=2) + "\n")


def decode_utf8(data, source, hint):
    """Text of a file in UTF-8, with or without byte order mark.

    Args:
        data: bytes.
        source: what to call the file in the message.
        hint: string, what to do about a file that is not UTF-8.

    Raises:
        AlbertError: if it is not, saying which byte in which line.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise AlbertError(
            f"{source} is not UTF-8: byte {data[error.start]:#04x} in line {line}. "
            f"{hint}"
        ) from error
