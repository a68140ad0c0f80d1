"""The memory of the test process, which TensorFlow's graphs fill."""

import contextlib
import ctypes
import gc
import os
import pathlib


def release_models():
    """Collect models and graphs that nothing refers to any more."""
    # Imported here, because the main process of pytest-xdist runs no test.
    import keras
    from tensorflow.python.framework.ops import gradient_registry

    # `all_reduce` of Keras' optimizers registers a function per traced `fit`, which
    # holds the graph: 30 MB for a small model, until the process ends.
    functions = gradient_registry._registry
    for name in [x for x in functions if x.startswith("CustomGradient-")]:
        del functions[name]
    keras.backend.clear_session()
    gc.unfreeze()
    gc.collect()
    # The surviving objects belong to TensorFlow, so later collections skip them.
    gc.freeze()
    # glibc keeps freed memory until it is asked to return it.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident_bytes():
    """Memory of this process, or 0 where /proc does not exist."""
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text("utf-8").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
