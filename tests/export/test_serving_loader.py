"""The loader of TensorFlow Serving, and the operations its TensorFlow knows."""

import functools
import os

import numpy as np
import pytest
import tensorflow as tf
from exported_tasks import NAMES, exporter
from sentence_piece_reference import english_classifier
from serving_loader import ask

import albert_tf

pytestmark = [pytest.mark.nightly, pytest.mark.traced]

INVALID = b"\xff\xe5\xa5\xbd\xfe"


@pytest.fixture(scope="module")
def export_task(tmp_path_factory):
    return exporter(tmp_path_factory)


@pytest.fixture(scope="module")
def serving_python():
    """The Python of an environment with TensorFlow 2.20, that of the newest server."""
    python = os.environ.get("ALBERT_TF_SERVING_PYTHON")
    return python or pytest.skip("ALBERT_TF_SERVING_PYTHON names no Python")


@pytest.fixture(scope="module", params=["this TensorFlow", "the newest server's"])
def loader(request):
    if request.param == "this TensorFlow":
        return ask
    return functools.partial(ask, python=request.getfixturevalue("serving_python"))


def assert_alike(given, expected):
    assert given.keys() == expected.keys()
    for name, value in expected.items():
        value = np.asarray(value)
        assert given[name].shape == value.shape
        if value.dtype.kind == "f":
            np.testing.assert_allclose(given[name], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(given[name], value)


@pytest.mark.parametrize("name", NAMES)
def test_strings_are_answered_as_by_keras(loader, export_task, name):
    exported = export_task(name)
    texts = {key: x.numpy() for key, x in exported.inputs.items()}
    key = exported.task.text_inputs[0]
    texts[key][-1] = INVALID
    given = loader(exported.path, **texts)
    tensors = tuple(map(tf.constant, texts.values()))
    assert_alike(given, exported.task.text_answers(tensors, exported.task))


def test_sentence_pieces_are_read(loader, tmp_path):
    classifier = english_classifier()
    path = albert_tf.export.saved_model(classifier, tmp_path, version="next")
    texts = tf.constant(["A good film!", "", "Café  in 2018"])
    given = loader(path, text=texts.numpy())
    assert_alike(given, classifier.text_answers((texts,), classifier))
