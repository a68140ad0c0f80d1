"""Exported classifiers: versions that are complete or absent, and their answers."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax
from sentence_piece_reference import english_classifier
from serving_operations import TABLE, operations_of
from small_classifier import OTHERS, TEXTS, predict, small_classifier

import albert_tf
from albert_tf.export.saved_models import versions, write_version

TESTS = pathlib.Path(__file__).parents[1]
pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")


@pytest.fixture(scope="module")
def classifier():
    # With these weights the texts have different classes.
    return small_classifier(labels=["坏", "中", "好"], seed=2)


# === Versions ===


def write(folder, version):
    def write_file(temporary):
        (temporary / "model").write_text("new")
        # A server loads every directory whose name is a number.
        assert not (temporary.name.isdigit() or temporary.parent.name.isdigit())

    return write_version(folder, version, write_file)


def test_versions_are_counted_and_never_replaced(tmp_path):
    assert write(tmp_path / "model", "next").name == "1"
    (tmp_path / "model" / "12").mkdir()
    (tmp_path / "model" / "99.part").mkdir()
    assert write(tmp_path / "model", "next").name == "13"
    assert versions(tmp_path / "model") == [1, 12, 13]
    with pytest.raises(ValueError, match='must be None or "next". Received: 7'):
        write(tmp_path / "model", 7)


def test_a_directory_with_other_files_is_refused(tmp_path):
    (tmp_path / "saved_model.pb").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not of an export: notes.txt. Move"):
        write(tmp_path, None)
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "saved_model.pb"]


def test_the_former_export_stays_if_the_new_one_cannot_replace_it(tmp_path):
    write(tmp_path / "model", None)
    (tmp_path / "model" / "model").rename(tmp_path / "model" / "saved_model.pb")
    with pytest.raises(FileNotFoundError):
        write_version(tmp_path / "model", None, pathlib.Path.rmdir)
    assert [x.name for x in tmp_path.rglob("*")] == ["model", "saved_model.pb"]
    # The same after a process was killed at that moment.
    former = tmp_path / ".model.0123abcd.part" / "former"
    former.parent.mkdir()
    (tmp_path / "model").rename(former)
    with pytest.raises(FileNotFoundError):
        write_version(tmp_path / "model", None, pathlib.Path.rmdir)
    assert [x.name for x in tmp_path.rglob("*")] == ["model", "saved_model.pb"]


def test_exports_at_once_get_a_version_each(tmp_path):
    # Aborted after this many seconds, if one of the four ends before it writes.
    barrier = threading.Barrier(4, timeout=60)

    def export(number):
        def write(folder):
            (folder / "model").write_text(str(number))
            barrier.wait()

        return write_version(tmp_path, "next", write)

    # Repeated, because each also looks for directories of killed processes, and may
    # find one that another has not yet locked.
    with ThreadPoolExecutor(4) as pool:
        paths = [x for _ in range(20) for x in pool.map(export, range(4))]
    assert sorted(int(path.name) for path in paths) == [*range(1, 81)]
    texts = [(path / "model").read_text() for path in paths]
    assert texts == [*"0123"] * 20
    assert len(os.listdir(tmp_path)) == 80


EXPORT = """
import os, signal, sys
from small_classifier import small_classifier
import albert_tf
from albert_tf.export import saved_models

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

# The graph and the weights are written, the card is not.
saved_models.write_json = die
albert_tf.export.saved_model(small_classifier(), sys.argv[1], version="next")
"""


@pytest.mark.text_ops
@pytest.mark.nightly
def test_a_killed_export_leaves_no_version(classifier, tmp_path):
    path = f"{TESTS.parent}:{TESTS / 'helpers'}"
    command = [sys.executable, "-c", EXPORT, tmp_path]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert done.returncode == -9
    left, lock = sorted(tmp_path.iterdir())
    assert lock.name == f"{left.name}.lock"
    assert (left / "new" / "saved_model.pb").exists()
    assert versions(tmp_path) == [] and not left.name.isdigit()
    albert_tf.export.saved_model(classifier, tmp_path, version="next")
    assert versions(tmp_path) == [1]


@pytest.mark.text_ops
@pytest.mark.traced
def test_a_failed_export_keeps_what_was_there(classifier, tmp_path, monkeypatch):
    def save(module, path, **kwargs):
        pathlib.Path(path, "saved_model.pb").write_text("half a gra", encoding="utf-8")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left\n...")

    directory = tmp_path / "serving" / "1"
    with pytest.raises(ValueError, match="`early_exit` is not for a AlbertText"):
        albert_tf.export.saved_model(classifier, directory, early_exit=1)
    with pytest.raises(TypeError, match="`label`. Did you mean `labels`"):
        albert_tf.export.saved_model(classifier, directory, label=["a", "b"])
    with monkeypatch.context() as patch:
        patch.setattr(tf.saved_model, "save", save)
        with pytest.raises(OSError, match="No space left"):
            albert_tf.export.saved_model(classifier, directory)
        assert list((tmp_path / "serving").iterdir()) == []
        directory.mkdir()
        (directory / "saved_model.pb").write_text("old")
        with pytest.raises(OSError, match="No space left"):
            albert_tf.export.saved_model(classifier, directory)
        assert [path.name for path in directory.rglob("*")] == ["saved_model.pb"]
        assert (directory / "saved_model.pb").read_text() == "old"
    # Without a failure the earlier export is replaced as a whole.
    (directory / "variables").mkdir()
    (directory / "variables" / "stale").write_text("old")
    albert_tf.export.saved_model(classifier, directory)
    assert not (directory / "variables" / "stale").exists()
    assert os.listdir(tmp_path / "serving") == ["1"]


# === Answers ===


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


@pytest.mark.text_ops
@pytest.mark.traced
def test_texts_pairs_and_ids_are_answered_as_by_predict(classifier, model):
    # Invalid UTF-8 around the bytes of 好.
    texts = [*TEXTS, "Café \x00\tZZ", b"\xff\xe5\xa5\xbd\xfe"]
    for version, x, labels in (
        ("1", {"text": texts}, ["坏", "中", "好"]),
        ("2", {"text": TEXTS, "text_b": OTHERS}, ["bad", "fair", "good"]),
    ):
        rows = tuple(x.values()) if len(x) > 1 else texts
        expected = softmax(predict(classifier, rows), axis=1)
        classes = expected.argmax(axis=1).tolist()
        ids = classifier.preprocessor(rows)
        for signature, given in (("serving_default", x), ("tokens", ids)):
            answers = ask(model / version, signature, **given)
            assert set(answers) == {"label", "label_id", "probabilities"}
            np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
            assert answers["probabilities"].dtype == np.float32
            assert answers["label_id"].tolist() == classes
            names = [x.decode() for x in answers["label"]]
            assert names == [labels[i] for i in classes]
        assert len(set(classes)) > 1


@pytest.mark.slow
@pytest.mark.text_ops
@pytest.mark.traced
def test_sentence_pieces_are_in_the_graph(tmp_path):
    classifier = english_classifier()
    classifier.pairs = True
    path = albert_tf.export.saved_model(classifier, tmp_path / "1")
    pairs = (
        ["A good film!", "", "Café  in 2018, tea", "\x00😀\tZZ x", "film, " * 30],
        ["bad", "The river", "", "bread? " * 20, b"\xffgood\xfe"],
    )
    answers = ask(path, text=pairs[0], text_b=pairs[1])
    expected = softmax(predict(classifier, pairs), axis=1)
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.02
    known = json.loads(TABLE.read_text())["operations"]
    assert operations_of(path).keys() <= known.keys()


@pytest.mark.text_ops
@pytest.mark.traced
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
