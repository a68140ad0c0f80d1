"""Errors while files are written, with the path of the user and what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import re
from collections.abc import Iterator

# The name of a temporary directory.
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.part")
# What to do after an error of the operating system.
ADVICE = {
    errno.ENOSPC: "Free space and try again",
    errno.EDQUOT: "Free space and try again",
    errno.EFBIG: "Choose a disk for larger files, or raise their limit (ulimit -f)",
    errno.EACCES: "Check the permissions, or choose another path",
    errno.EPERM: "Check the permissions, or choose another path",
    errno.EROFS: "Choose another path",
    errno.EIO: "Check the disk, and try again",
}


@contextlib.contextmanager
def name_final_path(path: str | os.PathLike) -> Iterator[None]:
    """Name the final path in errors about temporary files, and what to do."""
    try:
        yield
    except OSError as error:
        # A write to a full disk names no file.
        name, final = str(error.filename or path), pathlib.Path(path)
        file = pathlib.Path(name)
        is_inside = final in file.parents
        # Such as the lock of a file.
        is_beside = file.parent == final.parent and file.name.startswith(
            f".{final.name}."
        )
        is_above = file in (final, *final.parents)
        is_ours = is_beside or is_above or TEMPORARY.search(name)
        # Libraries also write to the folder of temporary files.
        is_space = error.errno in (errno.ENOSPC, errno.EDQUOT)
        if error.errno is None or not (is_inside or is_ours or is_space):
            raise
        reason, advice = error.strerror or "", ADVICE.get(error.errno)
        if advice and not reason.endswith("."):
            reason = f"{reason}. {advice}."
        raise OSError(error.errno, reason, str(path) if is_ours else name) from error


@contextlib.contextmanager
def writing_errors(path: str | os.PathLike, *errors: type[Exception]) -> Iterator[None]:
    """Raise an `OSError` for errors of a library that writes a file."""
    try:
        yield
    except errors as error:
        text = str(error)
        known = [code for code in ADVICE if os.strerror(code) in text]
        code = known[0] if known else errno.EIO
        reason = os.strerror(code) if known else text.partition("\n")[0]
        raise OSError(code, reason, str(path)) from error
