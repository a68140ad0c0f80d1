"""Import TensorFlow with few log lines, and with settings for speed.

This is all that `import albert_tf` changes in the process: two settings that TensorFlow
reads when it is imported, and three of malloc. The environment variable
`ALBERT_TF_PROCESS_SETTINGS=0` leaves the process as it is.
"""

import contextlib
import ctypes
import importlib
import os
import pathlib
import platform
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from albert_tf_lite.environment import environment, unless_set
from albert_tf_lite.errors import AlbertError, silent_stderr

# Environment variables that TensorFlow reads when it is imported.
_VARIABLES = {
    # TensorFlow uses oneDNN by default on some processors of Intel only.
    "TF_ENABLE_ONEDNN_OPTS": "1",
    # Without a GPU, TensorFlow logs errors about it.
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
# Options of `mallopt` by their numbers in malloc.h: M_ARENA_MAX, because the heaps of
# other arenas end at 64 MB; M_MMAP_THRESHOLD, 32 MB at most; M_TRIM_THRESHOLD, the free
# memory at the end of the heap that the process keeps.
MALLOC_OPTIONS = {-8: 1, -3: 32 << 20, -1: 128 << 20}


def import_tensorflow():
    """Import Keras and TensorFlow with few remarks on processor and GPUs.

    No log level hides all of them, but `silent_stderr` in a process of the command
    line. `TF_CPP_MIN_LOG_LEVEL=0` shows them.
    """
    refuse_legacy_keras()
    if may_change_process():
        keep_freed_memory()
    is_verbose = os.environ.get("TF_CPP_MIN_LOG_LEVEL") in ("0", "1")
    is_imported = "tensorflow" in sys.modules
    hidden: contextlib.AbstractContextManager = silent_stderr()
    if is_verbose or is_imported or lacks_avx():
        hidden = contextlib.nullcontext()
    with environment(import_variables()), _folder_for_temporary_files(), hidden:
        # Keras first: tensorflow_text hides why it cannot be imported.
        import keras  # noqa: F401
        import tensorflow  # noqa: F401

        import_tensorflow_text()


def may_change_process() -> bool:
    """Return whether the user lets this package change settings of the process."""
    return os.environ.get("ALBERT_TF_PROCESS_SETTINGS") != "0"


def import_variables() -> dict[str, str]:
    """Return environment variables for the import of TensorFlow."""
    return unless_set(_VARIABLES) if may_change_process() else {}


@contextlib.contextmanager
def _folder_for_temporary_files() -> Iterator[None]:
    """Let TensorFlow be imported on a read-only system.

    TensorFlow and Matplotlib ask for the folder of temporary files when they are
    imported, and write nothing to it.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        tempfile.tempdir = "/dev/shm"
        try:
            yield
        finally:
            tempfile.tempdir = None
    else:
        yield


def refuse_legacy_keras():
    """Raise if TensorFlow is to use Keras 2, which lacks what the models are built of.

    The variable is TensorFlow's own.
    """
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        raise AlbertError(
            "albert_tf needs Keras 3, but TF_USE_LEGACY_KERAS="
            f"{os.environ['TF_USE_LEGACY_KERAS']} asks TensorFlow for Keras 2. Unset "
            "the variable, and run code that needs tf_keras in a process of its own."
        )


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

    The pages of each new tensor would fault in again. Up to 128 MB are kept. Options
    of the environment (`MALLOC_ARENA_MAX` and others) have precedence.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(libc, "mallopt"):
        return
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    for option, value in MALLOC_OPTIONS.items():
        libc.mallopt(option, value)
