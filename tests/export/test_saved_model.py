"""The exported model: the same answers, from a file that TensorFlow Serving takes."""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
import zh
from albert_tf.models import AlbertBackbone, AlbertTextClassifier

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
PIECES = [f"##{letter}" for letter in LETTERS]
SMALL_VOCABULARY = [*SPECIAL, *"好坏很不太差了，！", *LETTERS, *PIECES]

TEXTS = ["很好，nice！", "", "差", "😀 好", "Café \x00\tZZ", "太差了！" * 9]
OTHERS = ["好", "不好", "", "差" * 30, "abc", "😀"]
# What a client may send although it is no text: the UTF-8 of 好 between other bytes.
INVALID = b"\xff\xe5\xa5\xbd\xfe"


def small_classifier(num_classes=3, dtype=None, **kwargs):
    """With weights that make different texts give clearly different answers."""
    backbone = AlbertBackbone(
        len(SMALL_VOCABULARY),
        num_layers=2,
        num_heads=2,
        embedding_dim=8,
        hidden_dim=12,
        intermediate_dim=20,
        max_sequence_length=27,
        dtype=dtype,
    )
    classifier = AlbertTextClassifier.from_backbone(
        backbone, SMALL_VOCABULARY, num_classes, **kwargs
    )
    rng = np.random.default_rng(0)
    for weight in classifier.trainable_variables:
        around = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(rng.normal(around, 0.3, weight.shape))
    return classifier


@pytest.fixture(scope="module")
def classifier():
    return small_classifier(labels=["坏", "中", "好"])


@pytest.fixture(scope="module")
def directory(classifier, tmp_path_factory):
    directory = tmp_path_factory.mktemp("serving") / "1"
    albert_tf.export.saved_model(classifier, directory)
    return directory


@pytest.fixture(scope="module")
def pairs_directory(classifier, tmp_path_factory):
    directory = tmp_path_factory.mktemp("serving_pairs") / "1"
    albert_tf.export.saved_model(classifier, str(directory), pairs=True)
    return directory


@pytest.fixture(scope="module")
def served(directory):
    return tf.saved_model.load(str(directory))


@pytest.fixture(scope="module")
def served_pairs(pairs_directory):
    return tf.saved_model.load(str(pairs_directory))


def ask(served, text, text_b=None):
    inputs = {"text": tf.constant(text, tf.string)}
    if text_b is not None:
        inputs["text_b"] = tf.constant(text_b, tf.string)
    answers = served.signatures["serving_default"](**inputs)
    return {name: value.numpy() for name, value in answers.items()}


def probabilities(classifier, x):
    logits = classifier.predict(x, verbose=0).astype("float64")
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


# --- The answers ---


def test_answers_to_texts_are_the_predictions(classifier, served):
    texts = [*TEXTS, INVALID]
    expected = probabilities(classifier, texts)

    answers = ask(served, texts)

    assert set(answers) == {"label", "label_id", "probabilities"}
    assert (answers["label_id"].dtype, answers["probabilities"].dtype) == (
        np.int32,
        np.float32,
    )
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    assert answers["label_id"].tolist() == expected.argmax(axis=1).tolist()
    assert len(set(answers["label_id"])) > 1
    labels = [label.decode() for label in answers["label"]]
    assert labels == ["坏中好"[i] for i in expected.argmax(axis=1)]


@pytest.mark.slow
def test_answers_to_pairs_are_the_predictions(classifier, served_pairs):
    first, second = [*TEXTS, "好"], [*OTHERS, INVALID]
    answers = ask(served_pairs, first, second)
    np.testing.assert_allclose(
        answers["probabilities"], probabilities(classifier, (first, second)), atol=1e-5
    )


@pytest.mark.slow
def test_pair_without_second_text_is_answered_as_a_single_text(served, served_pairs):
    paired = ask(served_pairs, TEXTS, [""] * len(TEXTS))
    np.testing.assert_allclose(
        paired["probabilities"], ask(served, TEXTS)["probabilities"], atol=1e-5
    )


def test_ids_are_answered_as_their_texts_are(classifier, served):
    features = classifier.preprocessor(TEXTS)
    answers = served.signatures["tokens"](**features)
    for name, expected in ask(served, TEXTS).items():
        if name == "probabilities":
            np.testing.assert_allclose(answers[name], expected, atol=1e-6)
        else:
            np.testing.assert_array_equal(answers[name], expected)


@pytest.mark.slow
def test_softmax_is_not_taken_twice_and_classes_without_names_are_numbered(
    classifier, tmp_path
):
    softmax = small_classifier(activation="softmax")
    # As a model that was saved and loaded has its arguments.
    restored = AlbertTextClassifier.from_config(softmax.get_config())
    restored.preprocessor.tokenizer.set_vocabulary(SMALL_VOCABULARY)
    restored.set_weights(softmax.get_weights())

    albert_tf.export.saved_model(restored, tmp_path / "1")

    answers = ask(tf.saved_model.load(str(tmp_path / "1")), TEXTS[:4])
    np.testing.assert_allclose(
        answers["probabilities"], probabilities(classifier, TEXTS[:4]), atol=1e-5
    )
    assert answers["label"].tolist() == [b"%d" % i for i in answers["label_id"]]


@pytest.mark.slow
def test_half_precision_answers_in_float32(classifier, tmp_path):
    half = small_classifier(dtype="mixed_bfloat16")
    albert_tf.export.saved_model(half, tmp_path / "1")
    answers = ask(tf.saved_model.load(str(tmp_path / "1")), TEXTS[:4])
    assert answers["probabilities"].dtype == np.float32
    difference = answers["probabilities"] - probabilities(classifier, TEXTS[:4])
    assert 0 < np.abs(difference).max() < 0.05


# --- Labels and pairs ---


@pytest.mark.slow
def test_given_labels_go_before_those_of_the_model(classifier, tmp_path):
    labels = ["bad", "fair", "good"]
    albert_tf.export.saved_model(classifier, tmp_path / "1", labels=np.array(labels))
    answers = ask(tf.saved_model.load(str(tmp_path / "1")), TEXTS)
    names = [label.decode() for label in answers["label"]]
    assert names == [labels[i] for i in answers["label_id"]]


def test_wrong_number_of_labels_is_refused(classifier, tmp_path):
    with pytest.raises(ValueError, match="3 classes. Received 2"):
        albert_tf.export.saved_model(classifier, tmp_path / "1", labels=["a", "b"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_model_of_pairs_is_exported_for_pairs(tmp_path):
    albert_tf.export.saved_model(small_classifier(pairs=True), tmp_path / "1")
    served = tf.saved_model.load(str(tmp_path / "1"))
    signature = served.signatures["serving_default"].structured_input_signature
    assert set(signature[1]) == {"text", "text_b"}


def test_model_without_preprocessor_is_refused(tmp_path):
    classifier = small_classifier()
    classifier.preprocessor = None
    with pytest.raises(ValueError, match="no preprocessor.*vocabulary"):
        albert_tf.export.saved_model(classifier, tmp_path / "1")
    assert list(tmp_path.iterdir()) == []


# --- The files ---


def test_failed_export_leaves_nothing(classifier, tmp_path, monkeypatch):
    def save(module, path, **kwargs):
        pathlib.Path(path, "saved_model.pb").write_text("half a gra")
        raise OSError("No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(OSError, match="No space left"):
        albert_tf.export.saved_model(classifier, tmp_path / "serving" / "1")
    assert list((tmp_path / "serving").iterdir()) == []


@pytest.mark.slow
def test_failed_export_keeps_the_model_that_was_there(
    classifier, directory, tmp_path, monkeypatch
):
    shutil.copytree(directory, tmp_path / "1")

    def save(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(OSError, match="No space left"):
        albert_tf.export.saved_model(classifier, tmp_path / "1")
    assert [path.name for path in tmp_path.iterdir()] == ["1"]
    for path in filter(pathlib.Path.is_file, directory.rglob("*")):
        kept = tmp_path / "1" / path.relative_to(directory)
        assert kept.read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_exporting_again_replaces_the_model(classifier, tmp_path):
    directory = tmp_path / "1"
    albert_tf.export.saved_model(classifier, directory, labels=["x", "y", "z"])
    files = sorted(path.relative_to(directory) for path in directory.rglob("*"))
    other = small_classifier(labels=["坏", "中", "好"])
    other.output_dense.bias.assign([0.0, 100.0, 0.0])

    albert_tf.export.saved_model(other, directory)

    answers = ask(tf.saved_model.load(str(directory)), TEXTS)
    assert [label.decode() for label in answers["label"]] == ["中"] * 6
    assert sorted(p.relative_to(directory) for p in directory.rglob("*")) == files
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_file_in_the_way_is_named(classifier, tmp_path):
    (tmp_path / "1").write_text("notes")
    with pytest.raises(FileExistsError, match="is a file"):
        albert_tf.export.saved_model(classifier, tmp_path / "1")
    assert (tmp_path / "1").read_text() == "notes"


@pytest.mark.slow
def test_weights_and_vocabulary_are_written_once(tmp_path):
    ideographs = [chr(code) for code in range(0x4E00, 0x9FA6)]
    vocabulary = [*SPECIAL, *ideographs, *LETTERS, *PIECES]
    vocabulary += [f"##{character}" for character in ideographs]
    vocabulary = vocabulary[: zh.sizes.VOCABULARY_SIZE]
    assert len(vocabulary) == 21128
    backbone = AlbertBackbone(**zh.SIZES["albert_tiny_zh"])
    classifier = AlbertTextClassifier.from_backbone(backbone, vocabulary, 2)

    albert_tf.export.saved_model(classifier, tmp_path / "1")

    needed = sum(4 * np.prod(weight.shape) for weight in classifier.weights)
    needed += len("\n".join(vocabulary).encode())
    files = [path for path in (tmp_path / "1").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1.1 * needed


# --- What loading it takes ---

# Everything but the standard library, NumPy and TensorFlow must be unneeded.
FRESH_PROCESS = """
import json, sys
import tensorflow as tf
import tensorflow_text

request = json.load(sys.stdin)
served = tf.saved_model.load(request["directory"])
answers = served.signatures["serving_default"](
    text=tf.constant(request["text"]), text_b=tf.constant(request["text_b"])
)
print(json.dumps({
    "modules": sorted({name.split(".")[0] for name in sys.modules}),
    "labels": [label.decode() for label in answers["label"].numpy()],
    "probabilities": answers["probabilities"].numpy().tolist(),
}))
"""


@pytest.fixture(scope="module")
def fresh_process(pairs_directory, tmp_path_factory):
    """What a process that knows TensorFlow only sees in the exported model."""
    request = {
        "directory": str(pairs_directory),
        "text": TEXTS,
        "text_b": OTHERS,
    }
    finished = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("elsewhere"),
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.mark.slow
def test_fresh_process_answers_without_this_package(fresh_process, served_pairs):
    modules = set(fresh_process["modules"])
    assert not modules & {"albert_tf", "zh", "keras_hub", "keras_nlp"}
    expected = ask(served_pairs, TEXTS, OTHERS)
    np.testing.assert_allclose(
        fresh_process["probabilities"], expected["probabilities"], atol=1e-6
    )
    assert fresh_process["labels"] == [label.decode() for label in expected["label"]]
