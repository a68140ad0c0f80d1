"""The exported classifier: the model's answers, from a folder that explains itself."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf
from sentence_piece_reference import english_classifier
from serving_operations import TABLE, operations_of
from small_classifier import OTHERS, TEXTS, predict, small_classifier

import albert_tf

pytestmark = [
    pytest.mark.traced,
    pytest.mark.filterwarnings("ignore:.* texts are longer"),
]
# Invalid UTF-8 around the bytes of 好.
INVALID = b"\xff\xe5\xa5\xbd\xfe"
# With these weights the texts have different classes.
SEED = 2


@pytest.fixture(scope="module")
def classifier():
    return small_classifier(labels=["坏", "中", "好"], seed=SEED)


@pytest.fixture(scope="module")
def model(classifier, tmp_path_factory):
    """Version 1 as it is; version 2 for pairs, with other labels."""
    folder = tmp_path_factory.mktemp("serving") / "model"
    albert_tf.export.saved_model(classifier, folder, version="next")
    labels = ["bad", "fair", "good"]
    classifier.pairs = True
    path = albert_tf.export.saved_model(
        classifier, folder, version="next", labels=labels
    )
    classifier.pairs = False
    assert path == folder / "2"
    return folder


# Kept, because loading takes a second.
load = functools.cache(tf.saved_model.load)


def ask(path, signature="serving_default", **inputs):
    answers = load(str(path)).signatures[signature](
        **{name: tf.constant(x) for name, x in inputs.items()}
    )
    return {name: value.numpy() for name, value in answers.items()}


def probabilities(classifier, x):
    return tf.nn.softmax(predict(classifier, x)).numpy()


def assert_predictions(answers, expected, labels):
    assert set(answers) == {"label", "label_id", "probabilities"}
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    assert answers["probabilities"].dtype == np.float32
    classes = answers["probabilities"].argmax(axis=1)
    assert answers["label_id"].tolist() == classes.tolist()
    assert [x.decode() for x in answers["label"]] == [labels[i] for i in classes]
    assert len(set(classes)) > 1


# === The answers ===


def test_texts_and_ids_are_answered_as_by_predict(classifier, model):
    texts = [*TEXTS, "Café \x00\tZZ", INVALID]
    expected = probabilities(classifier, texts)
    assert_predictions(ask(model / "1", text=texts), expected, "坏中好")
    features = classifier.preprocessor(texts)
    answers = ask(model / "1", "tokens", **features)
    assert_predictions(answers, expected, "坏中好")


def test_pairs_and_other_labels(classifier, model):
    answers = ask(model / "2", text=TEXTS, text_b=OTHERS)
    expected = probabilities(classifier, (TEXTS, OTHERS))
    assert_predictions(answers, expected, ["bad", "fair", "good"])


def test_sentence_pieces_are_in_the_graph(tmp_path):
    classifier = english_classifier()
    classifier.pairs = True
    path = albert_tf.export.saved_model(classifier, tmp_path / "1")
    pairs = (
        ["A good film!", "", "Café  in 2018, tea", "\x00😀\tZZ x", "film, " * 30],
        ["bad", "The river", "", "bread? " * 20, b"\xffgood\xfe"],
    )
    answers = ask(path, text=pairs[0], text_b=pairs[1])
    expected = probabilities(classifier, pairs)
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.02
    known = json.loads(TABLE.read_text())["operations"]
    assert operations_of(path).keys() <= known.keys()


# === The files ===


def test_warm_up_requests_are_read_by_the_protocol_of_the_server(model):
    pytest.importorskip("tensorflow_serving", reason="needs the extra [serving]")
    from tensorflow_serving.apis import prediction_log_pb2

    for version, names in {"1": {"text"}, "2": {"text", "text_b"}}.items():
        path = model / version / "assets.extra" / "tf_serving_warmup_requests"
        lengths = []
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            request = log.predict_log.request
            assert request.model_spec.signature_name == "serving_default"
            assert log.ByteSize() == len(record)
            inputs = request.inputs.items()
            texts = {name: tf.make_ndarray(proto) for name, proto in inputs}
            assert set(texts) == names
            assert ask(model / version, **texts)["probabilities"].shape == (1, 3)
            lengths.append(len(texts["text"][0].decode()))
        assert len(set(lengths)) == 2
