"""Import TensorFlow without its log lines, which no log level turns off."""

import contextlib
import os
import pathlib
import platform
import sys

from albert_tf_lite.errors import silent_stderr


def import_tensorflow():
    """Import Keras and TensorFlow and hide their remarks on processor and GPUs.

    `TF_CPP_MIN_LOG_LEVEL=0` shows them.
    """
    is_verbose = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") in ("0", "1")
    is_imported = "tensorflow" in sys.modules
    with (
        contextlib.nullcontext()
        if is_verbose or is_imported or lacks_avx()
        else silent_stderr()
    ):
        # Keras first: tensorflow_text hides why it cannot be imported.
        import keras  # noqa: F401
        import tensorflow_text  # noqa: F401


def lacks_avx():
    """Return whether TensorFlow will abort with a message on standard error."""
    file = pathlib.Path("/proc/cpuinfo")
    is_x86 = platform.machine() == "x86_64" and file.exists()
    return is_x86 and " avx " not in file.read_text()
