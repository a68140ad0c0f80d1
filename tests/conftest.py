"""What the tests share: where things are, and small models to test on."""

import contextlib
import ctypes
import gc
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import hypothesis
import pytest

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile(
    "any speed",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any speed")

GOLDEN = pathlib.Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def assets():
    """The folder `shared/`, with the released files and data sets."""
    path = os.environ.get("ALBERT_TF_ASSETS")
    if not path:
        pytest.skip("ALBERT_TF_ASSETS does not name the folder of released files")
    return pathlib.Path(path)


@pytest.fixture(autouse=True, scope="module")
def no_models_of_before():
    """What TensorFlow keeps of a module's models goes with the module."""
    yield
    # Not above: the process of pytest-xdist that runs no test would hold it, too.
    import keras

    keras.backend.clear_session()
    gc.unfreeze()
    gc.collect()
    # What is left is TensorFlow's, and not looked through during the next module.
    gc.freeze()
    # The C library of Linux keeps what is free, some 50 MB a module, until asked.
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="module")
def eagerly():
    """Models run without graphs, for tests that are not about them.

    To trace a small model takes longer than some steps of it, and of each traced `fit`
    TensorFlow keeps some 30 MB for as long as the process lives.
    """
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def no_weights():
    """Models have shapes and no values, which for the large ones take gigabytes."""
    import keras

    with keras.StatelessScope(initialize_variables=False):
        yield
    # Keras would make up for the values after the next such scope.
    keras.backend.clear_session()
