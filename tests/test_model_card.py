"""Model cards: README.md beside every saved model."""

import functools
import pathlib
import re
import shlex
import types
import unittest.mock

import huggingface_hub
import keras_hub
import pytest
from command_line import run, write_start
from small_classifier import small_classifier

import albert_tf
from albert_tf.files import CARD_MARK

pytestmark = pytest.mark.filterwarnings("ignore:Only .* dev examples")

TRAIN = "label\ttext\n" + "好评\t很好|吃\n差评\t太差了\n好评\t我想吃鸡蛋\n" * 4


@pytest.fixture(scope="module")
def finetuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    (folder / "train.tsv").write_text(TRAIN, "utf-8")
    (folder / "test.tsv").write_text("label\ttext\n好评\t很好\n", "utf-8")
    files = ("--train", folder / "train.tsv", "--test", folder / "test.tsv")
    output = ("--output", folder / "model")
    run("finetune", *files, *write_start(folder), *output, "--epochs", 1)
    return folder / "model"


def test_a_card_has_labels_examples_data_and_scores(finetuned, monkeypatch, capsys):
    card = (finetuned / "README.md").read_text("utf-8")
    assert str(finetuned.parent) not in card
    english, chinese = card.split("\n# 中文\n")
    # An example is a single cell of the table.
    rows = ["| 好评 | 我想吃鸡蛋 |", "| 差评 | 太差了 |"]
    for part, words in (
        (english, ("| train.tsv (a tenth, held back) | 2 |", "size `size.json`")),
        (chinese, ("| train.tsv（留出十分之一） | 2 |", "模型规模为 `size.json`")),
    ):
        rows = [*rows, "| train | train.tsv | 10 |", "| test | test.tsv | 1 |", *words]
        assert [row for row in rows if row not in part] == []
        assert re.search(r"\| `accuracy` \| [\d.]+ \| [\d.]+ \|", part)
        rows = rows[:2]
    monkeypatch.chdir(finetuned)
    (python,) = set(re.findall(r"```python\n(.*?)```", card, re.DOTALL))
    exec(python, {})
    assert "好评" in (printed := capsys.readouterr().out) or "差评" in printed
    (command,) = set(re.findall(r"```sh\n(.*?)```", card, re.DOTALL))
    name, *arguments = shlex.split(command)
    assert name == "albert-tf" and "我想吃鸡蛋" in run(*arguments).stdout


def test_an_export_has_the_scores_of_these_weights_only(finetuned, tmp_path):
    for path, has_scores in (("1", True), ("2", False)):
        run("export", finetuned, tmp_path / path)
        card = (tmp_path / path / "README.md").read_text("utf-8")
        assert ("| `accuracy` |" in card, "tf.saved_model.load" in card) == (
            has_scores,
            True,
        )
        small_classifier(2, labels=["差评", "好评"]).save_to_preset(finetuned)


@pytest.mark.parametrize(
    "save",
    [
        lambda model, path: model.save_to_preset(path),
        lambda model, path: model.backbone.save_to_preset(path),
        functools.partial(albert_tf.save_checkpoint, layout="keras"),
        albert_tf.export.saved_model,
    ],
)
def test_a_card_of_a_person_is_kept(tmp_path, save):
    model, card = small_classifier(2), tmp_path / "model" / "README.md"
    for written in (CARD_MARK, "Mine."):
        save(model, tmp_path / "model")
        assert CARD_MARK in card.read_text("utf-8")
        for file in card.parent.rglob("*"):
            if file.is_file() and file.suffix in (".h5", ".json"):
                file.unlink()
        card.write_text(written, "utf-8")
    save(model, tmp_path / "model")
    assert card.read_text("utf-8") == "Mine."


def test_an_upload_has_the_card(tmp_path, monkeypatch):
    """KerasHub would overwrite and delete it."""
    small_classifier(2).save_to_preset(tmp_path)
    card = (tmp_path / "README.md").read_text("utf-8")
    hub = {}

    def upload_file(path_or_fileobj, path_in_repo, repo_id):
        hub[path_in_repo] = pathlib.Path(path_or_fileobj).read_text("utf-8")

    def upload_folder(repo_id, folder_path):
        for file in pathlib.Path(folder_path).glob("*.*"):
            hub[file.name] = file.read_bytes().decode("utf-8", "replace")

    repository = types.SimpleNamespace(repo_id="me/tiny")
    for name, function in {
        "create_repo": unittest.mock.Mock(return_value=repository),
        "file_exists": lambda repo_id, filename: filename in hub,
        "upload_file": upload_file,
        "upload_folder": upload_folder,
    }.items():
        monkeypatch.setattr(huggingface_hub, name, function)
    albert_tf.upload_preset("hf://me/tiny", tmp_path)
    assert hub["README.md"] == card and {"task.json", "model.weights.h5"} <= hub.keys()
    assert (tmp_path / "README.md").read_text("utf-8") == card
    hub.clear()
    keras_hub.upload_preset("hf://me/tiny", str(tmp_path))
    assert hub["README.md"] != card, "Then albert_tf.upload_preset is not needed."
