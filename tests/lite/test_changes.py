"""Files that are read several times, and change in between."""

import os
import pathlib
import pickle

import pytest
from checkpoint_files import GOLDEN
from command_line import refused
from lite_tasks import needs_onnx
from small_classifier import VOCABULARY, small_classifier

import albert_tf
from albert_tf.checkpoints import open_checkpoint, save_checkpoint
from albert_tf.pretraining import PretrainingData
from albert_tf.pretraining.records.corpus import Corpus
from albert_tf.pretraining.records.shard_maker import ShardMaker
from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.tasks import Task
from albert_tf_cli.tasks.reading import checked_reader
from albert_tf_lite.changes import unchanged

# === Functions that begin to read a file, and return it and how to go on ===


def checkpoint(layout, pattern):
    def begin(folder):
        model = albert_tf.load_checkpoint(GOLDEN / "google_v2")
        save_checkpoint(model, folder / "model", layout)
        opened = open_checkpoint(folder / "model")
        (file,) = (folder / "model").glob(pattern)
        return file, lambda: opened.load_into(model)

    return begin


def exported_model(folder):
    file = folder / "model.onnx"
    albert_tf.export.onnx(small_classifier(2), file)
    # For a worker.
    pickled = pickle.dumps(albert_tf.export.OnnxModel(file))
    pickle.loads(pickled)
    return file, lambda: pickle.loads(pickled)


def exported_model_in_use(folder):
    file, _ = exported_model(folder)
    model = albert_tf.export.OnnxModel(file)
    return file, lambda: pickle.dumps(model)


def vocabulary(folder):
    file = folder / "vocab.txt"
    file.write_text("\n".join(VOCABULARY), "utf-8")
    settings = PretrainingData(str(file))
    pickled = pickle.dumps(ShardMaker(settings, folder, settings.get_config()))
    return file, lambda: pickle.loads(pickled)


def labelled_texts(folder):
    file = folder / "a.tsv"
    file.write_text("0\t差\n1\t好\n", "utf-8")

    class Reader(Task):
        def read(self, path, columns, known=None):
            change(pathlib.Path(path))
            raise ValueError("of the second half")

    return file, lambda: checked_reader(Reader())(file, ColumnOptions())


CASES = {
    "labelled texts": labelled_texts,
    "bundle": checkpoint("google", "*.data-*"),
    "safetensors": checkpoint("huggingface", "*.safetensors"),
    "vocabulary": vocabulary,
    "exported model of a worker": exported_model,
    "exported model": exported_model_in_use,
}


def change(file):
    """Change a file such that it can still be read."""
    if file.suffix == ".onnx":
        albert_tf.export.onnx(small_classifier(2, seed=1), file)
    else:
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(data.replace("好".encode(), "坏".encode()))


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=needs_onnx if "exported" in x else ()) for x in CASES],
)
def test_a_file_that_changes_between_two_readings_is_refused(name, tmp_path):
    file, go_on = CASES[name](tmp_path)
    change(file)
    with pytest.raises(albert_tf.AlbertError, match=f"{file.name} has changed since"):
        go_on()


def test_a_corpus_that_changes_is_named(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("好\n\n好\n", "utf-8")
    corpus = Corpus(str(tmp_path / "*"), block_bytes=1)
    for number, _ in enumerate(corpus.blocks()):
        if number == 1:
            change(tmp_path / "b.txt")
    (warning,) = corpus.warnings
    assert f"{tmp_path / 'b.txt'} has changed while it was read" in warning


def test_a_pipe_is_refused_because_it_can_be_read_once(tmp_path):
    pipe, model = tmp_path / "pipe", tmp_path / "model"
    os.mkfifo(pipe)
    small_classifier(2).save_to_preset(model)
    assert "pipe is not a file" in refused("predict", model, pipe)
    assert "pipe is not a file" in refused("evaluate", model, pipe)
    output = ("--output", tmp_path / "new")
    command = ("finetune", "--train", pipe, "--checkpoint", model, *output)
    assert "pipe is not a file" in refused(*command)


def test_other_errors_of_a_file_remain(tmp_path):
    with pytest.raises(KeyError), unchanged(tmp_path):
        raise KeyError
