"""Import TensorFlow with few log lines, and with settings for speed."""

import contextlib
import ctypes
import importlib
import os
import pathlib
import platform
import sys
import tempfile
from typing import Any

from albert_tf_lite.errors import silent_stderr

# Options of `mallopt` by their numbers in malloc.h: M_ARENA_MAX, because the heaps of
# other arenas end at 64 MB; M_MMAP_THRESHOLD, 32 MB at most; M_TRIM_THRESHOLD.
MALLOC_OPTIONS = {-8: 1, -3: 32 << 20, -1: 1 << 30}


def import_tensorflow():
    """Import Keras and TensorFlow with few remarks on processor and GPUs.

    No log level hides all of them, but `silent_stderr` in a process of the command
    line. `TF_CPP_MIN_LOG_LEVEL=0` shows them.
    """
    keep_freed_memory()
    # By default TensorFlow uses oneDNN on some processors of Intel only. It has no
    # effect once TensorFlow is imported.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        # A read-only system. TensorFlow and Matplotlib ask for one while imported.
        tempfile.tempdir = "/dev/shm"
    is_verbose = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") in ("0", "1")
    is_imported = "tensorflow" in sys.modules
    with (
        contextlib.nullcontext()
        if is_verbose or is_imported or lacks_avx()
        else silent_stderr()
    ):
        # Keras first: tensorflow_text hides why it cannot be imported.
        import keras  # noqa: F401
        import tensorflow  # noqa: F401

        import_tensorflow_text()


def import_tensorflow_text() -> Any:
    """Return tensorflow_text, or `None` where it is not installed, as on Windows."""
    try:
        return importlib.import_module("tensorflow_text")
    except ModuleNotFoundError as error:
        # Other errors are those of a damaged installation.
        if error.name != "tensorflow_text":
            raise
    return None


def lacks_avx():
    """Return whether TensorFlow will abort with a message on standard error."""
    file = pathlib.Path("/proc/cpuinfo")
    is_x86 = platform.machine() == "x86_64" and file.exists()
    return is_x86 and " avx " not in file.read_text("utf-8")


def keep_freed_memory():
    """Let glibc reuse the memory of large tensors, which it returns to the system.

    The pages of each new tensor would fault in again, a seventh of the time of a
    training step. Options of the environment (`MALLOC_ARENA_MAX` and others) have
    precedence.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(libc, "mallopt"):
        return
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    for option, value in MALLOC_OPTIONS.items():
        libc.mallopt(option, value)
