"""Native libraries that greet on standard error, which no log level turns off."""

import contextlib
import os
import sys
import tempfile


@contextlib.contextmanager
def silent_stderr():
    """Keep what native code prints to standard error, and show it on failure."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:  # There is none.
        yield
        return
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except ModuleNotFoundError:
            raise
        except BaseException:
            kept.seek(0)
            os.write(saved, kept.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
