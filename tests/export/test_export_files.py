"""The folder that an export writes: a version that is complete or absent."""

import os
import pathlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import tensorflow as tf
from small_classifier import small_classifier

import albert_tf
from albert_tf.export.saved_models import versions, write_version

TESTS = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def classifier():
    return small_classifier(labels=["坏", "中", "好"])


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


def test_two_who_export_at_once_get_a_version_each(tmp_path):
    barrier = threading.Barrier(4)

    def export(number):
        def write(folder):
            (folder / "model").write_text(str(number))
            barrier.wait()

        return write_version(tmp_path, "next", write)

    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(export, range(4)))
    assert sorted(path.name for path in paths) == ["1", "2", "3", "4"]
    assert {(path / "model").read_text() for path in paths} == {*"0123"}
    assert len(os.listdir(tmp_path)) == 4


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


@pytest.mark.slow
def test_a_killed_export_leaves_no_version(classifier, tmp_path):
    path = f"{TESTS.parent}:{TESTS / 'helpers'}"
    command = [sys.executable, "-c", EXPORT, tmp_path]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert done.returncode == -9
    (left,) = tmp_path.iterdir()
    assert (left / "new" / "saved_model.pb").exists()
    assert versions(tmp_path) == [] and not left.name.isdigit()
    albert_tf.export.saved_model(classifier, tmp_path, version="next")
    assert versions(tmp_path) == [1]


@pytest.mark.traced
def test_a_failed_export_keeps_what_was_there(classifier, tmp_path, monkeypatch):
    def save(module, path, **kwargs):
        pathlib.Path(path, "saved_model.pb").write_text("half a gra")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left\n...")

    directory = tmp_path / "serving" / "1"
    with pytest.raises(ValueError, match="`early_exit` is not for a AlbertText"):
        albert_tf.export.saved_model(classifier, directory, early_exit=1)
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
