"""Lock files and directories against other processes of this machine."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
from collections.abc import Iterator

import filelock


def remove_unneeded(path: pathlib.Path) -> None:
    """Remove a file or a directory that nothing needs, if possible.

    Tried twice, because on Windows a virus scanner holds files open for a moment.
    """
    for _ in range(2):
        with contextlib.suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def only_writer(path: str | os.PathLike) -> contextlib.AbstractContextManager[None]:
    """Lock a file or directory against other processes of this machine.

    The operating system releases the lock of a killed process.
    """
    path = pathlib.Path(path)
    # Inside a directory, because the directory above may be read-only.
    lock_file = path / ".lock" if path.is_dir() else lock_beside(path)
    return locked(lock_file, path)


def lock_beside(path: pathlib.Path) -> pathlib.Path:
    """Return the lock file of a path that may be renamed while it is locked.

    Windows renames no directory that has an open file in it.
    """
    return path.with_name(f"{path.name}.lock")


@contextlib.contextmanager
def locked(
    lock_file: pathlib.Path, path: pathlib.Path, blocking: bool = False
) -> Iterator[None]:
    """Hold a lock file, which is removed at the end; `path` is for the message."""
    lock = filelock.FileLock(lock_file)
    is_new = not lock_file.exists()
    while not lock.is_locked:
        with open(lock_file, "ab") as file:
            try:
                lock.acquire(blocking=blocking)
            except filelock.Timeout:
                raise BlockingIOError(
                    f"Another process is writing to {path}. Wait until it ends, or "
                    "choose another output."
                ) from None
            except OSError:
                if is_new:
                    remove_unneeded(lock_file)
                raise
            # The last holder may have removed the file, and another process may have
            # created and locked a new one.
            if not _is_file_at(file, lock_file):
                lock.release()
    try:
        yield
    finally:
        # Windows removes it when the lock is released.
        remove_unneeded(lock_file)
        lock.release()


def _is_file_at(file, path):
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
