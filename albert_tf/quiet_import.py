"""Importing TensorFlow without its greeting, which no log level turns off."""

import contextlib
import os
import pathlib
import platform
import sys

from albert_tf_lite.quiet import silent_stderr


def import_tensorflow():
    """Import Keras and TensorFlow; what they say of the processor is not shown.

    Nor what it says of missing GPUs and kernels: what an operation cannot do is an
    exception. `TF_CPP_MIN_LOG_LEVEL=0` shows all.
    """
    is_shown = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") in ("0", "1")
    is_there = "tensorflow" in sys.modules
    is_shown = is_shown or is_there or _lacks_avx()
    with contextlib.nullcontext() if is_shown else silent_stderr():
        # Keras first: tensorflow_text hides why it cannot be imported.
        import keras  # noqa: F401
        import tensorflow_text  # noqa: F401


def _lacks_avx():
    """Whether TensorFlow will end the process, saying why on standard error."""
    try:
        told = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return platform.machine() == "x86_64" and " avx " not in told
