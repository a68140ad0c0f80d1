"""Notice pointers of Git LFS, which lie in place of files that were not downloaded."""

import os
import pathlib

from albert_tf_lite.errors import AlbertError

# A pointer has fewer bytes.
_LENGTH = 1024
_STARTS = (
    b"version https://git-lfs.github.com/spec/",
    b"version https://hawser.github.com/spec/",
)


def check_start(path: object, start: bytes) -> None:
    """Raise if the first bytes of a file, called `path`, are those of a pointer."""
    if start.startswith(_STARTS) and b"\noid " in start[:_LENGTH]:
        raise AlbertError(
            f"{path} is a pointer of Git LFS, not the file itself. Run `git lfs pull` "
            "in its repository, or download the file."
        )


def check_downloaded(*paths: str | os.PathLike) -> None:
    """Raise if one of some files is a pointer.

    For files that a library opens by their names.
    """
    for path in paths:
        with open(path, "rb") as file:
            check_start(path, file.read(_LENGTH))


def read_bytes(path: str | os.PathLike) -> bytes:
    """Return the content of a file; raise if it is a pointer."""
    content = pathlib.Path(path).read_bytes()
    check_start(path, content[:_LENGTH])
    return content
