"""Pointers of Git LFS in place of files are named, in whatever a user's file is for."""

import pathlib
import shutil
import zipfile

import pytest
from checkpoint_files import GOLDEN, TOKENS, copy
from command_line import refused
from hostile_files import LFS_POINTER
from small_classifier import small_backbone, small_classifier

import albert_tf
import zh
from albert_tf import data
from albert_tf.checkpoints import open_checkpoint, save_checkpoint
from albert_tf.data import read_squad, read_tagged_texts
from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.pretraining.records.corpus import Corpus
from albert_tf.tokenizers import load_tokenizer
from albert_tf_lite import LiteRTModel, OnnxModel
from albert_tf_lite.errors import AlbertError

BUNDLE = "model.ckpt-best"


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset")
    small_classifier(2, labels=["坏", "好"]).save_to_preset(folder)
    return folder


def assert_named(call, path):
    with pytest.raises(AlbertError, match="git lfs pull") as error:
        call()
    assert path.name in str(error.value)


# Readers of one file, by a name for it.
READERS = {
    "train.csv": data.read_labelled_texts,
    "train.xlsx": data.read_labelled_texts,
    "train.parquet": data.read_texts,
    "train.jsonl.gz": data.read_texts,
    "train.txt": read_tagged_texts,
    "dev.json": read_squad,
    "corpus.txt": Corpus,
    "words.txt": lambda path: zh.Jieba(user_dictionary=path),
    "vocab.txt": load_tokenizer,
    "spiece.model": load_tokenizer,
    "model.safetensors": open_checkpoint,
    "model-00001-of-00001.safetensors": open_checkpoint,
    "model.zip": open_checkpoint,
    "model.keras": open_checkpoint,
    "model.onnx": OnnxModel,
    "lora.weights.h5": lambda path: small_backbone().load_lora_weights(path),
}


@pytest.mark.parametrize("name", READERS)
def test_a_pointer_in_place_of_a_file(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(LFS_POINTER)
    index = '{"weight_map": {"x": "model-00001-of-00001.safetensors"}}'
    (tmp_path / "model.safetensors.index.json").write_text(index)
    assert_named(lambda: READERS[name](path), path)


def test_a_pointer_in_place_of_a_network_of_litert(tmp_path):
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "model.tflite"
    path.write_bytes(LFS_POINTER)
    assert_named(lambda: LiteRTModel(path), path)


def test_a_pointer_among_the_files_of_a_checkpoint(preset, tmp_path):
    google = copy("google_v2", tmp_path)
    (google / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    backbone = albert_tf.load_checkpoint(google)
    save_checkpoint(backbone, tmp_path / "hf", "huggingface", google / "vocab.txt")
    tokenizer = lambda path: open_checkpoint(path).tokenizer()  # noqa: E731
    load = lambda path: AlbertTextClassifier.from_preset(str(path))  # noqa: E731
    cases = {
        google: (tokenizer, (".index", ".data-00000-of-00001", "_config.json", ".txt")),
        tmp_path / "hf": (
            tokenizer,
            (".safetensors", "config.json", "_config.json"),
        ),
        preset: (load, ("model.weights.h5", "task.weights.h5", "task.json", ".txt")),
    }
    for folder, (read, endings) in cases.items():
        for ending in endings:
            whole = tmp_path / "copy"
            shutil.copytree(folder, whole)
            path = next(x for x in sorted(whole.rglob("*")) if x.name.endswith(ending))
            path.write_bytes(LFS_POINTER)
            assert_named(lambda: read(whole), path)  # noqa: B023
            shutil.rmtree(whole)
    shutil.copytree(preset, tmp_path / "copy")
    path = tmp_path / "copy" / "model.weights.h5"
    path.write_bytes(LFS_POINTER)
    assert_named(lambda: AlbertBackbone.from_preset(path.parent), path)


def test_a_pointer_in_an_archive(tmp_path):
    archive = tmp_path / "model.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (GOLDEN / "google_v2").iterdir():
            content = path.read_bytes()
            is_data = ".data-" in path.name
            file.writestr(path.name, LFS_POINTER if is_data else content)
    assert_named(lambda: open_checkpoint(archive), archive)


def test_commands_name_a_pointer_before_they_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pointer = pathlib.Path("pointer.txt")
    pointer.write_bytes(LFS_POINTER)
    pathlib.Path("text.txt").write_text("很好\n\n不好\n", encoding="utf-8")
    for command in (
        (
            "pretrain-data",
            "--input",
            "text.txt",
            "--vocab",
            pointer,
            "--output",
            "records",
        ),
        (
            "pretrain-data",
            "--input",
            pointer,
            "--vocab",
            "text.txt",
            "--output",
            "records",
        ),
        ("predict", "albert_micro_zh:sentiment", pointer),
        ("finetune", "--train", pointer, "--checkpoint", "x", "--output", "out"),
        ("inspect", pointer),
    ):
        assert "git lfs pull" in refused(*command)
    assert not pathlib.Path("records").exists()
