"""Silence native libraries whose messages no log level turns off."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Hide what native code prints to standard error, unless an error is raised."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:  # The process has no standard error.
        yield
        return
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except ModuleNotFoundError:
            raise
        except BaseException:
            hidden.seek(0)
            os.write(saved, hidden.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
