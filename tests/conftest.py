"""What the tests share: where things are, and small models to test on."""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def assets():
    """The folder `shared/`, with the released files and data sets."""
    path = os.environ.get("ALBERT_TF_ASSETS")
    if not path:
        pytest.skip("ALBERT_TF_ASSETS does not name the folder of released files")
    return pathlib.Path(path)


@pytest.fixture
def no_weights():
    """Models have shapes and no values, which for the large ones take gigabytes."""
    with keras.StatelessScope(initialize_variables=False):
        yield
    # Keras would make up for the values after the next such scope.
    keras.backend.clear_session()
