"""The loader of TensorFlow Serving, and the operations its TensorFlow knows."""

import json
import os
import subprocess

import numpy as np
import pytest
import serving_operations
import tensorflow as tf
from exported_tasks import NAMES, exporter
from serving_loader import Loader
from serving_operations import TABLE, operations_of
from small_sentence_piece import english_classifier

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
def loader(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("loader")
    if request.param == "this TensorFlow":
        return Loader(folder)
    return Loader(folder, request.getfixturevalue("serving_python"))


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
    # What is no text, too.
    key = exported.task.text_inputs[0]
    texts[key][-1] = INVALID
    given = loader.ask(exported.path, **texts)
    tensors = tuple(map(tf.constant, texts.values()))
    assert_alike(given, exported.task.text_answers(tensors, exported.task))


def test_ids_are_answered_as_by_keras(loader, export_task):
    exported = export_task("token classifier")
    features = exported.task.preprocessor(exported.case.x)
    inputs = {name: value.numpy() for name, value in features.items()}
    given = loader.ask(exported.path, "tokens", **inputs)
    outputs = exported.task(features, training=False)
    assert_alike(given, exported.task.answers(outputs))


def test_a_wrong_request_is_refused_by_the_name_of_the_input(loader, export_task):
    exported = export_task("pair classifier")
    with pytest.raises(RuntimeError, match="as_many_text_b_as_text"):
        loader.ask(exported.path, text=["好", "差"], text_b=["好"])
    with pytest.raises(RuntimeError, match="text_of_a_batch"):
        loader.ask(exported.path, text=[["好", "差"]], text_b=["好"])
    given = loader.ask(exported.path, text=[["好"], ["差"]], text_b=["好", ""])
    assert given["label_id"].shape == (2,)


def test_sentence_pieces_are_read(loader, tmp_path):
    classifier = english_classifier()
    path = albert_tf.export.saved_model(classifier, tmp_path, version="next")
    texts = tf.constant(["A good film!", "", "Café  in 2018"])
    given = loader.ask(path, text=texts.numpy())
    assert_alike(given, classifier.text_answers((texts,), classifier))


def test_the_table_of_operations_is_that_of_the_server(
    export_task, tmp_path, serving_python
):
    pieces = albert_tf.export.saved_model(english_classifier(), tmp_path / "1")
    paths = [pieces, *(export_task(name).path for name in NAMES)]
    finished = subprocess.run(
        [serving_python, serving_operations.__file__, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    report, known = json.loads(finished.stdout), json.loads(TABLE.read_text())
    assert report["tensorflow"].startswith("2.20.")
    used = set().union(*map(operations_of, paths))
    assert set(report["operations"]) == used
    assert {x: known["operations"][x] for x in used} == report["operations"]
    assert known["graph_version"] == report["graph_version"]
