"""Mistakes end in one line with the value and the remedy, and change no file."""

import hashlib
import shutil
import sys
import warnings

import pytest
import tensorflow as tf
from command_line import refused, write_start
from conftest import GOLDEN
from small_classifier import small_classifier

import albert_tf_cli
from albert_tf_cli.shared import console
from albert_tf_lite.unknown import UnknownTokensWarning

FILES = {
    "train.tsv": "label\ttext\n1\t很好\n0\t差\n1\t好\n0\t坏\n",
    "one.tsv": "label\ttext\n1\t很好\n1\t不错\n",
    "other.tsv": "label\ttext\n中评\t还行\n1\t很好\n",
    "notes": "mine",
    "cut.onnx": "cut",
    "holes.tsv": "label\ttext\n1\t很好\n\t差\n0\t好\n\t坏\n",
    "blank.tsv": "label\ttext\n\t好\n",
    "lists.jsonl": '{"label": ["好", "贵"], "text": "很好"}\n',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_text(content, "utf-8")
    write_start(folder)
    small_classifier(2, labels=["差", "好"]).save_to_preset(folder / "model")
    small_classifier(2, pairs=True).save_to_preset(folder / "pairs")
    for name in ("google_v2", "albert_zh_preln"):
        shutil.copytree(GOLDEN / name, folder / name)
    shutil.copytree(GOLDEN / "google_v2", folder / "checkpoint")
    shutil.copy(folder / "vocab.txt", folder / "checkpoint")
    (folder / "unfinished" / ".training").mkdir(parents=True)
    exported = tf.Module()
    exported.weight = tf.Variable(1.0)
    tf.saved_model.save(exported, str(folder / "serving" / "1"))
    return folder


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in files}


TRAIN = "finetune --dev train.tsv --output out --train"
START = f"{TRAIN} train.tsv --checkpoint checkpoint"
# Before TensorFlow is imported, which takes seconds.
EARLY = {
    f"{TRAIN} no.tsv": "no.tsv is not a file",
    f"{TRAIN} one.tsv": "All texts of one.tsv have the label '1'",
    f"{TRAIN} one.tsv --task multi-label": "All texts of one.tsv have the labels ['1']",
    f"{TRAIN} train.tsv --test other.tsv": "Expected one of the classes ['0', '1']",
    f"{TRAIN} train.tsv --task summarization": "Name it in the header as one of summa",
    f"{TRAIN} train.tsv": "Missing --checkpoint",
    f"{START} --checkpoint lost": "no checkpoint at lost: it is not",
    f"{START} --output checkpoint --overwrite": "a model other than --checkpoint",
    f"{START}:a --output checkpoint --overwrite": "a model other than --checkpoint",
    f"{START} --output model": "--overwrite to replace a model",
    f"{TRAIN} holes.tsv": "2 labels are invalid: Line 3 of holes.tsv",
    f"{TRAIN} train.tsv --skip-invalid --task summarization": "only to text-classif",
    f"{TRAIN} train.tsv --sheet 一": "train.tsv is not a workbook of sheets. Leave out "
    "--sheet",
    f"{TRAIN} blank.tsv --task multi-label": "No text of blank.tsv has a label",
    f"{TRAIN} train.tsv --label-separator ,": "only to multi-label",
    f"{TRAIN} lists.jsonl": "Line 1 of lists.jsonl has the labels ['好', '贵']. Expec",
    "inspect [/a]": "There is no checkpoint at [/a]: it is not",
    "evaluate unfinished train.tsv": "Run the same command again to resume it",
    "predict model train.tsv one.tsv": "Pass one file at a time. Received: train.tsv",
    "predict model lost.csv": "Expected texts, or one file of texts",
    "predict cut.onnx 好 --engine onnx": "do not apply to an exported file",
    "pretrain --data . --output out": "Give --config to train from random weights",
    "predict model 好 --output notes": "notes already exists. Choose another --output",
    "pretrain --data no --output out --config albert_tiny_zh": "no records in no",
    "export model x.pb": "x.pb has the suffix of no format. Expected .onnx, .tflite",
    "export model x.tflite --format onnx": "--format onnx does not write .tflite files",
    "export model x.onnx --lengths 32": "--lengths needs --format litert",
    "export model x.tflite --lengths 32,x": "Expected numbers of tokens",
    "convert checkpoint model --to keras": "pass --overwrite to replace a check",
    "prune checkpoint model --corpus train.tsv": "pass --overwrite to replace a check",
    "convert checkpoint x.h5 --to keras": "Choose a name such as x.",
    f"{START} --output my.keras": "Choose a name such as my",
}
LATE = {
    f"{TRAIN} train.tsv --config small --vocab vocab.txt": "Known sizes: ",
    f"{START} --task regression --early-exit": "--early-exit does not apply",
    f"{START} --task multi-label --class-weight balanced": "--class-weight does not",
    f"{START} --monitor macro-f1": "Expected one of: accuracy, macro_f1",
    "evaluate checkpoint train.tsv": "is a pretrained model, without a fine-tuned head",
    "predict pairs 很好": "text, text_pair, separated by tabs. Received: '很好'",
    "predict serving/1 好": "directory of the model that it was exported from",
    "export cut.onnx out": "cut.onnx is an exported file. Pass the directory of",
    "predict cut.onnx 好": "cut.onnx cannot be opened by OnnxModel: it is truncated",
    # Of these two commands, one has an option for the vocabulary.
    "predict google_v2 好 --task fill-mask": "or pass `vocabulary=` (in Python).",
    f"{TRAIN} train.tsv --checkpoint google_v2": "or pass --vocab.",
    "convert albert_zh_preln out --to google": "Layouts that can: albert_zh, keras",
}


@pytest.mark.parametrize("command", [*EARLY, *LATE])
def test_a_mistake_is_one_line_and_changes_nothing(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    if command in EARLY:
        monkeypatch.delattr("albert_tf.quiet_import.import_tensorflow")
    before = digests(folder)
    assert {**EARLY, **LATE}[command] in refused(*command.split())
    assert digests(folder) == before and not (folder / "out").exists()


def test_a_package_that_scores_need_is_missing(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    error = refused(*f"{START} --task summarization".split())
    assert "rouge_score is not installed. Run: pip install" in error


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5"])
def test_a_model_with_a_truncated_file(folder, tmp_path, name):
    file = shutil.copytree(folder / "model", tmp_path / "model") / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    refused("predict", tmp_path / "model", "很好")


def test_a_warning_is_printed_once(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["albert-tf", "--version"])
    monkeypatch.setattr(warnings, "formatwarning", None)
    with pytest.raises(SystemExit):
        albert_tf_cli.main()
    messages = ("a 1", "a 1", "a 2", *map(UnknownTokensWarning, ("b 1", "b 2")))
    lines = [warnings.formatwarning(x, UserWarning, "", 1) for x in messages]
    expected = ["a 1", "", "a 2", "b 1", ""]
    assert lines == [f"Warning: {x}\n" if x else "" for x in expected]


def test_a_bug_shows_its_traceback(monkeypatch):
    name = "albert_tf.checkpoints.inspect_checkpoint"
    monkeypatch.setattr(name, lambda path, config: int(path))
    with pytest.raises(ValueError, match="invalid literal"):
        refused("inspect", ".")


def test_control_characters_are_escaped_on_a_terminal(capsys, monkeypatch):
    """Otherwise a label could clear the screen, or change how its line reads."""
    assert r"There is no checkpoint at \u001b[2Jx" in refused("inspect", "\x1b[2Jx")
    line = '{"label": "a\x9b31m\u202e"}\t好'
    for is_terminal, expected in (
        (False, line),
        (True, '{"label": "a\\u009b31m\\u202e"}\t好'),
    ):
        terminal = type(console.console)(force_terminal=is_terminal, markup=False)
        monkeypatch.setattr(console, "console", terminal)
        console.print_line(line)
        assert capsys.readouterr().out == f"{expected}\n"
    console.print_summary({"labels": ["\x1b[31m差", "好"]})
    assert r"\u001b[31m差, 好" in capsys.readouterr().out
