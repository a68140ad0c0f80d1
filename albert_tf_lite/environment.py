"""Environment variables of the process, set no longer than they are needed."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping

# Otherwise, a thread could restore the value that another one has set.
_LOCK = threading.RLock()


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables in the block, and restore the former values."""
    with _LOCK:
        former = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in former.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def unless_set(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, those that the user has set with the value of the user."""
    return {name: os.environ.get(name, value) for name, value in variables.items()}
