"""The example's client and the examples of the docs against a server."""

import json
import pathlib
import re
import runpy
import sys

import numpy as np
import pytest
import tensorflow as tf
from python_server import Model, grpc_server, rest_answer, rest_server
from small_classifier import small_classifier

import albert_tf

ROOT = pathlib.Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "serving.md").read_text()
pytestmark = pytest.mark.traced
TEXTS = ["房间很干净", "早餐太差了", ""]


@pytest.fixture(scope="module")
def classifier():
    return small_classifier(num_classes=2, labels=["差评", "好评"])


@pytest.fixture(scope="module")
def model(classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving") / "reviews"
    path = albert_tf.export.saved_model(classifier, folder, version="next")
    return Model("reviews", {1: path}, {"stable": 1})


@pytest.fixture(scope="module")
def expected(classifier):
    answers = classifier.text_answers((tf.constant(TEXTS),), classifier)
    return {name: value.numpy() for name, value in answers.items()}


def assert_expected(rows, expected):
    assert [row["label"] for row in rows] == [x.decode() for x in expected["label"]]
    assert [row["label_id"] for row in rows] == expected["label_id"].tolist()
    given = [row["probabilities"] for row in rows]
    np.testing.assert_allclose(given, expected["probabilities"], atol=1e-5)


@pytest.mark.parametrize("door", ["grpc", "rest"])
def test_the_example_asks_a_server(model, expected, door, monkeypatch, capsys):
    options = ["--label", "stable"]
    if door == "grpc":
        pytest.importorskip("tensorflow_serving", reason="needs the extra [serving]")
        server, port = grpc_server(model)
    else:
        server, port = rest_server(model)
        options = ["--rest", *options]
    script = str(ROOT / "examples" / "serving_client.py")
    address = f"localhost:{port}"
    monkeypatch.setattr(sys, "argv", [script, *options, address, "reviews", *TEXTS])
    try:
        runpy.run_path(script)
    finally:
        server.stop(None) if door == "grpc" else server.shutdown()
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [text for text, _ in lines] == TEXTS
    assert_expected([json.loads(answer) for _, answer in lines], expected)


# --- REST ---


def keys(value):
    """The form of JSON: its names, and the types of what stands under them."""
    if isinstance(value, dict):
        return {name: keys(x) for name, x in value.items()}
    if isinstance(value, list):
        return [keys(value[0])] if value else []
    return type(value).__name__


def test_the_examples_of_the_docs_have_the_form_of_the_server(model):
    blocks = re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)
    pairs = [json.loads(block) for block in blocks]
    assert len(pairs) >= 4 and len(pairs) % 2 == 0
    for request, answer in zip(pairs[::2], pairs[1::2], strict=True):
        ask = model.signature(request.get("signature_name"))
        assert keys(rest_answer(ask, request)) == keys(answer)
