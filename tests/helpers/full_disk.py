"""A disk on which no file may grow past a size."""

import contextlib

import pytest


@contextlib.contextmanager
def full_disk(size):
    """Let no file of this process grow past a number of bytes.

    Its writes fail in the middle, as on a full disk, with "File too large".
    """
    resource = pytest.importorskip("resource", reason="needs limits of Unix")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
