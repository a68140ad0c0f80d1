"""Shared by all tests: where files are, and how TensorFlow runs."""

import gc
import importlib.util
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# As `import albert_tf` sets it, because some tests import TensorFlow first.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# Each worker of pytest-xdist uses one core.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
# Tests expect English help on every machine.
os.environ["LANGUAGE"] = "en"

import hypothesis
import pytest
from memory import release_models, resident_bytes

# The time of an example depends on the load of the machine.
hypothesis.settings.register_profile(
    "any speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any speed")

GOLDEN = pathlib.Path(__file__).parent / "golden"
# Bytes of a worker above which the models of earlier tests are collected.
memory_limit = 800_000_000


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Run functions eagerly unless the test or its module is marked `traced`.

    Tracing a small model takes longer than some steps of it, and TensorFlow keeps
    about 30 MB per traced `fit` until the process ends.
    """
    if tf := sys.modules.get("tensorflow"):
        tf.config.run_functions_eagerly(item.get_closest_marker("traced") is None)


def pytest_collection_modifyitems(items):
    """Skip tests of the operations of TensorFlow Text where it is not installed."""
    if importlib.util.find_spec("tensorflow_text"):
        return
    for item in items:
        if item.get_closest_marker("text_ops"):
            item.add_marker(pytest.mark.skip(reason="needs TensorFlow Text"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Import without garbage collection, which takes a fifth of the time.

    Later collections skip the modules. They are rarer, because tests make few cycles.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


@pytest.fixture(scope="session")
def assets():
    """The folder of released files and data sets."""
    path = os.environ.get("ALBERT_TF_ASSETS")
    if not path:
        pytest.skip("ALBERT_TF_ASSETS does not name the folder of released files")
    return pathlib.Path(path)


@pytest.fixture
def write(tmp_path):
    """Write a file of bytes, a text, or a value as JSON, and return its path."""

    def write_file(content, name="a.json"):
        if not isinstance(content, bytes | str):
            content = json.dumps(content, ensure_ascii=False)
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write_file


@pytest.fixture(autouse=True)
def release_memory():
    """Collect the models of earlier tests once the process has grown."""
    global memory_limit
    yield
    if resident_bytes() < memory_limit:
        return
    release_models()
    memory_limit = max(memory_limit, resident_bytes() + 120_000_000)


@pytest.fixture
def no_weights():
    """Build models without values: the large ones would take gigabytes."""
    import keras

    with keras.StatelessScope(initialize_variables=False):
        yield
    # Keras would initialize the variables after the next such scope.
    keras.backend.clear_session()
