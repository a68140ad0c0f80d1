"""Making what libraries raise on damaged files errors of ours, in one line."""

import contextlib
import re

from albert_tf.checkpoints.layout import CheckpointError


def first_line(error):
    """What an exception says, in one line, without TensorFlow's own names."""
    lines = _NODES.sub("", str(error)).strip().splitlines()
    line = lines[0] if lines else repr(error)
    # It may quote the file, which then would steer the terminal.
    return "".join(x if x.isprintable() else "?" for x in line)


_NODES = re.compile(r"\{\{.*?\}\} | \[Op:\w+\]")


@contextlib.contextmanager
def naming(path, *damage):
    """Make a library's error one of ours, which names the file.

    Args:
        path: path of the file that is read.
        *damage: further exceptions than `ValueError` that a damaged file causes.
    """
    try:
        yield
    except (ValueError, *damage) as error:
        # An error of the system names the file, one of h5py's does not.
        if isinstance(error, CheckpointError) or getattr(error, "filename", None):
            raise
        raise CheckpointError(
            f"{path} cannot be read: it is damaged, or another kind of file. "
            f"({first_line(error)})"
        ) from error
