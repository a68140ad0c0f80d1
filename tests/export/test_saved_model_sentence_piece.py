"""The exported model of an English classifier, with its tokenizer in the graph."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from small_sentence_piece import english_classifier, train_model
from tensorflow.core.protobuf import saved_model_pb2

import albert_tf

TEXTS = ["A good film!", "", "Café  in 2018, tea", "\x00😀\tZZ x", "film, " * 30]
OTHERS = ["bad", "The river", "", "bread? " * 20, "😀"]
INVALID = b"\xffgood\xfe"

# The operations of tensorflow_text that TensorFlow Serving links
# (`@org_tensorflow_text//tensorflow_text:ops_lib`) and that we need.
LINKED_TEXT_OPERATIONS = {"NormalizeUTF8", "SentencepieceOp", "SentencepieceTokenizeOp"}
PYTHON_OPERATIONS = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


@pytest.fixture(scope="module")
def proto():
    return train_model()


@pytest.fixture(scope="module")
def classifier(proto):
    return english_classifier(proto)


@pytest.fixture(
    scope="module",
    params=[pytest.param(False, marks=pytest.mark.slow), True],
    ids=["texts", "pairs"],
)
def pairs(request):
    return request.param


@pytest.fixture(scope="module")
def directory(classifier, pairs, tmp_path_factory):
    directory = tmp_path_factory.mktemp("serving") / "1"
    albert_tf.export.saved_model(classifier, directory, pairs=pairs)
    return directory


def probabilities(classifier, x):
    logits = classifier.predict(x, verbose=0).astype("float64")
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def saved_model_of(directory):
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((directory / "saved_model.pb").read_bytes())
    return model.meta_graphs[0].graph_def


def operations_of(directory):
    """The names of all operations, in the graph and in its functions."""
    graph = saved_model_of(directory)
    names = {node.op for node in graph.node}
    functions = graph.library.function
    names |= {node.op for function in functions for node in function.node_def}
    return names - {function.signature.name for function in functions}


@pytest.mark.filterwarnings("ignore:.* texts are longer")
def test_answers_are_the_predictions(classifier, directory, pairs):
    texts, others = [*TEXTS, INVALID], [*OTHERS, INVALID]
    inputs = {"text": tf.constant(texts)}
    if pairs:
        inputs["text_b"] = tf.constant(others)

    served = tf.saved_model.load(str(directory)).signatures["serving_default"]
    for _ in range(2):
        answers = served(**inputs)

    expected = probabilities(classifier, (texts, others) if pairs else texts)
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    assert answers["label_id"].numpy().tolist() == expected.argmax(axis=1).tolist()
    names = ["bad", "fair", "good"]
    assert answers["label"].numpy().tolist() == [
        names[i].encode() for i in expected.argmax(axis=1)
    ]
    assert np.ptp(expected, axis=0).max() > 0.02


@pytest.mark.traced
def test_model_of_pieces_is_written_once(directory, proto):
    content = (directory / "saved_model.pb").read_bytes()
    assert content.count(proto) == 1
    assert not list((directory / "assets").iterdir())


# Everything but the standard library, NumPy and TensorFlow must be unneeded.
FRESH_PROCESS = """
import json, sys
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

request = json.load(sys.stdin)
unknown = [name for name in request["operations"] if not op_def_registry.get(name)]
import tensorflow_text
served = tf.saved_model.load(request["directory"])
inputs = {name: tf.constant(value) for name, value in request["inputs"].items()}
answers = served.signatures["serving_default"](**inputs)
print(json.dumps({
    "unknown": unknown,
    "modules": sorted({name.split(".")[0] for name in sys.modules}),
    "probabilities": answers["probabilities"].numpy().tolist(),
}))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* texts are longer")
def test_fresh_process_answers_with_operations_that_serving_links(
    classifier, directory, pairs, tmp_path
):
    operations = operations_of(directory)
    request = {
        "directory": str(directory),
        "operations": sorted(operations),
        "inputs": {"text": TEXTS, **({"text_b": OTHERS} if pairs else {})},
    }
    finished = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    answers = json.loads(finished.stdout.splitlines()[-1])

    assert set(answers["unknown"]) == LINKED_TEXT_OPERATIONS
    assert not operations & PYTHON_OPERATIONS
    unneeded = {"albert_tf", "zh", "keras_hub", "keras_nlp", "sentencepiece"}
    assert not set(answers["modules"]) & unneeded
    np.testing.assert_allclose(
        answers["probabilities"],
        probabilities(classifier, (TEXTS, OTHERS) if pairs else TEXTS),
        atol=1e-5,
    )
