"""Mistakes end in one line with the value and the remedy, and change no file."""

import hashlib
import shutil
import sys

import pytest
from command_line import refused, run, write_start
from conftest import GOLDEN
from small_classifier import VOCABULARY, small_backbone, small_classifier

from albert_tf.models import AlbertTextRegressor

FILES = {
    "train.tsv": "label\ttext\n1\t很好\n0\t差\n1\t好\n0\t坏\n",
    "pairs.tsv": "label\ttext\ttext_b\n1\t很好\t好\n0\t差\t很差\n",
    "single.tsv": "label\ttext\n1\t很好\n0\t差\n",
    "empty.tsv": "label\ttext\n\t好\n1\t差\n2\t坏\n",
    "one.tsv": "label\ttext\n1\t很好\n1\t不错\n",
    "ragged.tsv": "label\ttext\n1\t很\t好\n",
    "other.tsv": "label\ttext\n中评\t还行\n1\t很好\n",
    "none.tsv": "label\ttext\n\t好\n\t坏\n",
    "words.tsv": "label\ttext\ttext_b\nx\t好\t坏\n",
    "none.txt": "中 O\n",
    "blank.txt": "\n\n",
    "notes": "mine",
    "cut.onnx": "cut",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_text(content, "utf-8")
    write_start(folder)
    small_classifier(2, labels=["差", "好"]).save_to_preset(folder / "model")
    small_classifier(2, pairs=True).save_to_preset(folder / "pairs")
    regressor = AlbertTextRegressor.from_backbone(small_backbone(), VOCABULARY)
    regressor.save_to_preset(folder / "regressor")
    for name in ("google_v2", "google_early", "albert_zh_preln"):
        shutil.copytree(GOLDEN / name, folder / name)
    shutil.copytree(GOLDEN / "google_v2", folder / "checkpoint")
    shutil.copy(folder / "vocab.txt", folder / "checkpoint")
    (folder / "longer.txt").write_text("\n".join([*VOCABULARY, "[unused]"]) + "\n")
    (folder / "unfinished" / ".training").mkdir(parents=True)
    (folder / "report").mkdir()
    (folder / "report" / "mine").touch()
    return folder


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in files}


DATA = ("--train", "train.tsv", "--dev", "train.tsv")
START = ("--checkpoint", "checkpoint", "--output", "out")
FINETUNE = ("finetune", *DATA, *START)
RANDOM = ("finetune", *DATA, "--output", "out", "--config")


def train_on(file, *options):
    return ("finetune", "--train", file, *START, *options)


# Before TensorFlow is imported, which takes seconds.
EARLY = {
    "training data": (train_on("no.tsv"), "no.tsv does not exist."),
    "one class": (train_on("one.tsv"), "All texts of one.tsv have the label '1'"),
    "ragged": (train_on("ragged.tsv"), "Line 2 of ragged.tsv has 3 columns"),
    "empty label": (train_on("empty.tsv"), "label of line 2 of empty.tsv is empty"),
    "column": (
        (*FINETUNE, "--label-column", "stars"),
        "no column 'stars'. Its columns",
    ),
    "other label": (
        (*FINETUNE, "--dev", "other.tsv"),
        "'中评' of line 2 of other.tsv is not among the classes ['0', '1']",
    ),
    "pairs": ((*FINETUNE, "--test", "pairs.tsv"), "has pairs of texts where single"),
    "no labels": (
        train_on("none.tsv", "--task", "multi-label"),
        "No text of none.tsv has a label",
    ),
    "no number": (
        train_on("words.tsv", "--task", "regression"),
        "The label 'x' of line 2 of words.tsv is not a finite number.",
    ),
    "no pair": (
        train_on("words.tsv", "--task", "spelling-correction"),
        "Line 1 of words.tsv has 3 columns",
    ),
    "no entity": (
        train_on("none.txt", "--task", "token-classification"),
        "No text of none.txt has an entity",
    ),
    "checkpoint": (
        (*FINETUNE, "--checkpoint", "lost"),
        "no checkpoint at lost: it is not",
    ),
    "no start": (
        (*RANDOM, "albert_tiny_zh"),
        "Missing --checkpoint",
    ),
    "vocabulary": ((*FINETUNE, "--vocab", "no.txt"), "no.txt is not a file"),
    "output file": ((*FINETUNE, "--output", "notes"), "--output notes is a file"),
    "output model": ((*FINETUNE, "--output", "model"), "--overwrite to replace it"),
    "inspect": (
        ("inspect", "[/a]"),
        "There is no checkpoint at [/a]: it is not",
    ),
    "beginning of a name": (("inspect", "check"), "no checkpoint at check: it is not"),
    "convert": (
        ("convert", "lost", "out", "--to", "keras"),
        "no checkpoint at lost: it is not",
    ),
    "unfinished": (
        ("evaluate", "unfinished", "train.tsv"),
        "The training in unfinished is unfinished. Run the same command again",
    ),
    "no report": (
        ("evaluate", "model", "train.tsv", "--train", "train.tsv"),
        "--train needs --report DIRECTORY",
    ),
    "no texts": (
        ("predict", "model", "no.csv"),
        "no.csv is not a file. Expected texts",
    ),
    "answers": (
        ("predict", "model", "好", "--output", "notes"),
        "notes already exists. Choose another --output",
    ),
    "exported": (("predict", "no.onnx", "好"), "no.onnx is not a file"),
    "explain file": (
        ("predict", "cut.onnx", "好", "--explain"),
        "do not apply to an exported file",
    ),
    "export": (
        ("export", "model", "notes"),
        "already exists. Choose another path",
    ),
    "check": (
        ("export", "model", "out", "--check", "train.tsv"),
        "--check needs --form",
    ),
    "corpus": (("prune", "model", "out", "--corpus", "no.txt"), "no.txt is not a file"),
    "records": (
        ("pretrain", "--data", "no", "--output", "out", "--config", "albert_tiny_zh"),
        "There are no records in no",
    ),
    "size": (("pretrain", "--data", ".", "--output", "out"), "Give --config to train"),
}
LATE = {
    "no head": (
        ("evaluate", "checkpoint", "train.tsv"),
        "is a pretrained model, without a fine-tuned head",
    ),
    "unknown size": (
        (*RANDOM, "albert_mini", "--vocab", "vocab.txt"),
        "--config albert_mini is neither a file nor a known size. Known sizes: ",
    ),
    "longer": (
        (*FINETUNE, "--vocab", "longer.txt"),
        "longer.txt has 121 tokens, the model 120",
    ),
    "no vocabulary": (
        (*FINETUNE, "--checkpoint", "google_v2"),
        "There is no vocabulary beside",
    ),
    "option": (
        ("finetune", "--task", "regression", *DATA, *START, "--early-exit"),
        "--early-exit does not apply to --task regression",
    ),
    "single": (
        ("predict", "pairs", "很好"),
        "Expected text, text_pair, separated by tabs. Received: '很好'",
    ),
    "single file": (
        ("evaluate", "pairs", "single.tsv"),
        "single.tsv has single texts where pairs of texts are expected",
    ),
    "labels": (
        ("evaluate", "model", "train.tsv"),
        "The label '1' of line 2 of train.tsv is not among the classes ['差', '好']",
    ),
    "cut file": (
        ("predict", "cut.onnx", "好"),
        "cut.onnx is cut short, or was not written by albert_tf",
    ),
    "one answer": (
        ("predict", "regressor", "好", "--top-k", 2),
        "--top-k does not apply to regression",
    ),
    "explain": (
        ("predict", "regressor", "好", "--explain"),
        "--explain does not apply to regression, only to text-classification",
    ),
    "report": (
        ("evaluate", "regressor", "train.tsv", "--report", "new"),
        "--report does not apply to regression, only to text-classification",
    ),
    "report folder": (
        ("evaluate", "model", "train.tsv", "--report", "report"),
        "report contains files that are not part of a report: mine",
    ),
    "precision": (
        ("export", "model", "out", "--format", "savedmodel", "--precision", "int8"),
        "--precision int8 needs --format litert or --format onnx",
    ),
    "layout": (
        ("convert", "albert_zh_preln", "out", "--to", "google"),
        "Layouts that can: albert_zh, keras",
    ),
    "activation": (
        ("convert", "google_early", "out", "--to", "kerashub"),
        "activation='relu'",
    ),
    "convert over": (
        ("convert", "google_v2", "checkpoint", "--to", "keras"),
        "holds files of another checkpoint",
    ),
}


@pytest.mark.parametrize("name", [*EARLY, *LATE])
def test_a_mistake_is_one_line_and_changes_nothing(name, folder, monkeypatch):
    arguments, message = {**EARLY, **LATE}[name]
    monkeypatch.chdir(folder)
    if name in EARLY:
        for module in [
            x for n, x in sys.modules.items() if n.startswith("albert_tf_cli")
        ]:
            monkeypatch.delattr(module, "import_tensorflow", raising=False)
    before = digests(folder)
    assert message in refused(*arguments)
    assert digests(folder) == before and not (folder / "out").exists()


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("config.json", 0.5),
        ("task.json", 0.5),
        ("model.weights.h5", 0.5),
        ("task.weights.h5", 0),
        ("assets/tokenizer/vocabulary.txt", 0),
    ],
)
def test_a_model_with_a_file_truncated_or_missing(folder, tmp_path, name, share):
    file = shutil.copytree(folder / "model", tmp_path / "model") / name
    data = file.read_bytes()
    file.unlink()
    if share:
        file.write_bytes(data[: int(len(data) * share)])
    refused("predict", tmp_path / "model", "很好")


def test_a_misspelt_command_or_option_points_to_help():
    for arguments in (("classify",), ("predict", "a", "--top-k", -1)):
        assert "--help" in run(*arguments, code=2).output


def test_a_bug_shows_its_traceback(monkeypatch):
    monkeypatch.setattr(
        "albert_tf.checkpoints.inspect_checkpoint", lambda path, config: int(path)
    )
    with pytest.raises(ValueError, match="invalid literal"):
        refused("inspect", ".")
