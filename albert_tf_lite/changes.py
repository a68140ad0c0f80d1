"""Notice files that change while they are read."""

import contextlib
import os
from collections.abc import Callable, Iterator

from albert_tf_lite.errors import AlbertError


def change_check(*paths: str | os.PathLike) -> Callable[[], None]:
    """Return a function that raises if one of the files has changed since this call.

    It compares what the file system knows: the file, its size and its modification
    time.
    """

    def states():
        return [
            (x.st_dev, x.st_ino, x.st_size, x.st_mtime_ns) for x in map(os.stat, paths)
        ]

    before = states()

    def check() -> None:
        for path, old, new in zip(paths, before, states(), strict=True):
            if old != new:
                raise changed_error(path)

    return check


def unchanged(*paths: str | os.PathLike) -> contextlib.AbstractContextManager[None]:
    """Raise at the end of a block if one of the files has changed since its start."""
    return checked_at_end(change_check(*paths))


@contextlib.contextmanager
def checked_at_end(check: Callable[[], None]) -> Iterator[None]:
    """Call a check of `change_check` at the end of a block, also after an error."""
    try:
        yield
    except Exception:
        # A change may look like damage.
        check()
        raise
    check()


def changed_error(path: str | os.PathLike) -> AlbertError:
    """Return the error about a file that has changed while it was read."""
    return AlbertError(
        f"{path} has changed since it was first read. Read it again when no other "
        "program writes to it."
    )
