"""The folder that an export writes: complete or absent, and what stands in it."""

import json
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from small_classifier import TEXTS, small_classifier

import albert_tf
from albert_tf.export.versions import versions, written_directory

TESTS = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def classifier():
    return small_classifier(labels=["坏", "中", "好"])


@pytest.fixture(scope="module")
def model(classifier, tmp_path_factory):
    """A model in two versions, the second with half the bytes."""
    folder = tmp_path_factory.mktemp("serving") / "model"
    first = albert_tf.export.saved_model(classifier, folder, version="next")
    second = albert_tf.export.saved_model(
        classifier, folder, version="next", dtype="bfloat16", pairs=True
    )
    assert [first.name, second.name] == ["1", "2"]
    return folder


# --- Versions ---


def write(folder, version, content="new"):
    with written_directory(folder, version) as written:
        (written.temporary / "model").write_text(content)
        # A server takes what has a number for a name.
        assert not written.temporary.name.isdigit()
    return written.path


def test_next_version_is_one_more_than_the_highest(tmp_path):
    assert write(tmp_path / "model", "next").name == "1"
    (tmp_path / "model" / "12").mkdir()
    (tmp_path / "model" / "notes").mkdir()
    (tmp_path / "model" / "99.part").mkdir()
    assert write(tmp_path / "model", "next").name == "13"
    assert write(tmp_path / "model", 7).name == "7"
    assert versions(tmp_path / "model") == [1, 7, 12, 13]


@pytest.mark.parametrize(
    "version, error, message",
    [
        (1, FileExistsError, "has version 1, which is never replaced. Take 2"),
        (-1, ValueError, "a number from 0"),
        ("newest", ValueError, 'or "next"'),
    ],
)
def test_versions_that_are_refused(tmp_path, version, error, message):
    write(tmp_path / "model", 1, "old")
    with pytest.raises(error, match=message):
        write(tmp_path / "model", version)
    assert (tmp_path / "model" / "1" / "model").read_text() == "old"
    assert os.listdir(tmp_path / "model") == ["1"]


def test_two_who_export_at_once_get_a_version_each(tmp_path):
    barrier, paths = threading.Barrier(4), []

    def export(number):
        with written_directory(tmp_path, "next") as written:
            (written.temporary / "model").write_text(str(number))
            barrier.wait()
        paths.append(written.path)

    threads = [threading.Thread(target=export, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name for path in paths) == ["1", "2", "3", "4"]
    assert {(path / "model").read_text() for path in paths} == {*"0123"}
    assert len(os.listdir(tmp_path)) == 4


EXPORT = """
import importlib, os, signal, sys
from small_classifier import small_classifier
import albert_tf

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

if "killed" in sys.argv:
    # The graph and the weights are written, the card is not.
    importlib.import_module("albert_tf.export.saved_model").write_card = die
albert_tf.export.saved_model(small_classifier(), sys.argv[1], version="next")
"""


def run(*command):
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{TESTS.parent}:{TESTS / 'helpers'}"},
        timeout=300,
    )


@pytest.mark.slow
def test_a_killed_export_leaves_no_version(classifier, tmp_path):
    command = sys.executable, "-c", EXPORT, tmp_path
    assert run(*command, "killed").returncode == -9
    (left,) = tmp_path.iterdir()
    assert (left / "saved_model.pb").exists()
    assert versions(tmp_path) == [] and not left.name.isdigit()
    albert_tf.export.saved_model(classifier, tmp_path, version="next")
    assert versions(tmp_path) == [1]


# One with room for the weights and not for the graph, and one with room for neither.
@pytest.mark.slow
@pytest.mark.parametrize("size", ["16k", "64k"])
def test_a_full_disk_is_one_clear_error(tmp_path, size):
    script = 'mount -t tmpfs -o size=$0 none "$1" || exit 99; "$2" -c "$3" "$1"; '
    script += 'code=$?; echo "left: $(ls -A "$1")"; exit $code'
    command = "sh", "-c", script, size, tmp_path, sys.executable, EXPORT
    finished = run("unshare", "-rm", *command)
    if finished.returncode == 99 or "unshare" in finished.stderr:
        pytest.skip(f"no file system can be mounted here: {finished.stderr}")
    assert finished.returncode == 1
    error = finished.stderr.strip().splitlines()[-1]
    assert error.startswith(f"OSError: {tmp_path} could not be written: ")
    assert "No space left on device" in error and "MB are free there" in error
    assert finished.stdout.splitlines() == ["left: "]


# --- What is in it ---


def test_half_the_bytes_give_nearly_the_same_answers(classifier, model):
    answers, counts = [], []
    for version, dtype in {"1": tf.float32, "2": tf.bfloat16}.items():
        path = str(model / version)
        weights = tf.train.load_checkpoint(f"{path}/variables/variables")
        types = weights.get_variable_to_dtype_map()
        assert set(types.values()) == {dtype, tf.string}
        shapes = weights.get_variable_to_shape_map()
        del shapes["_CHECKPOINTABLE_OBJECT_GRAPH"]
        counts.append(sum(map(np.prod, shapes.values())))
        tokens = tf.saved_model.load(path).signatures["tokens"]
        given = tokens(**classifier.preprocessor(TEXTS))
        answers.append(given["probabilities"].numpy())
    assert counts == [classifier.count_params()] * 2
    assert answers[1].dtype == np.float32
    assert 0 < np.abs(answers[0] - answers[1]).max() < 0.05


@pytest.mark.slow
def test_weights_in_half_precision_are_written_in_float32_if_asked(tmp_path):
    half = small_classifier(sizes={"dtype": "bfloat16"})
    assert {weight.dtype for weight in half.backbone.weights} == {"bfloat16"}
    paths = [
        albert_tf.export.saved_model(half, tmp_path, version="next", dtype=dtype)
        for dtype in ("float32", None)
    ]
    sizes = [
        sum(file.stat().st_size for file in (path / "variables").iterdir())
        for path in paths
    ]
    assert sizes[0] > sizes[1] + half.backbone.count_params()
    answers = [
        tf.saved_model.load(str(path)).signatures["serving_default"](
            text=tf.constant(TEXTS)
        )["probabilities"]
        for path in paths
    ]
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"dtype": "float16"}, "`dtype` must be one of"),
        ({"labels": ["a"]}, "3 classes"),
    ],
)
def test_wrong_arguments_write_nothing(classifier, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        albert_tf.export.saved_model(
            classifier, tmp_path / "model", version="next", **arguments
        )
    assert list(tmp_path.iterdir()) == []


def test_card_and_labels_say_what_it_is(model):
    labels = json.loads((model / "1" / "labels.json").read_text())
    assert labels == ["坏", "中", "好"]
    card = (model / "1" / "README.md").read_text()
    for words in (
        "AlbertTextClassifier",
        "| labels | 坏, 中, 好 |",
        "| out | `probabilities` | float32 [batch, 3] |",
        "| in | `text` | string [batch] or [batch, 1] |",
        "| in | `token_ids` | int32 [batch, any] |",
        "text=tf.constant(['很好'])",
    ):
        assert words in card


def test_warm_up_requests_are_read_by_the_protocol_of_the_server(model):
    pytest.importorskip("tensorflow_serving", reason="needs the extra [serving]")
    from tensorflow_serving.apis import prediction_log_pb2

    for version, names in {"1": {"text"}, "2": {"text", "text_b"}}.items():
        path = model / version / "assets.extra" / "tf_serving_warmup_requests"
        served = tf.saved_model.load(str(model / version))
        lengths = []
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            request = log.predict_log.request
            assert request.model_spec.signature_name == "serving_default"
            # Nothing but what was read.
            assert log.ByteSize() == len(record)
            texts = {
                name: tf.constant(tf.make_ndarray(proto))
                for name, proto in request.inputs.items()
            }
            assert set(texts) == names
            answers = served.signatures["serving_default"](**texts)
            assert answers["probabilities"].shape == (1, 3)
            lengths.append(len(tf.strings.unicode_split(texts["text"], "UTF-8")[0]))
        assert lengths == sorted(set(lengths)) and len(lengths) == 2
