"""Model cards: README.md beside every saved model."""

import re
import shlex

import pytest
from command_line import run, write_start
from small_classifier import small_classifier

import albert_tf
from albert_tf.model_card import MARK

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
    for part in card.split("\n# 中文\n"):
        assert re.search(r"好评: (很好\\\|吃|我想吃鸡蛋)<br>差评: 太差了 \|", part)
        assert "| size.json (random weights) |" in part
        assert "| train | train.tsv | 10 |" in part
        assert re.search(
            r"\| dev \| train.tsv \(10%\) \| 2 \|.* `accuracy` [\d.]+", part
        )
        assert re.search(r"\| test \| test.tsv \| 1 \|.* `accuracy` [\d.]+", part)
    monkeypatch.chdir(finetuned)
    (python,) = set(re.findall(r"```python\n(.*?)```", card, re.DOTALL))
    exec(python, {})
    assert "好评" in (printed := capsys.readouterr().out) or "差评" in printed
    (command,) = set(re.findall(r"```sh\n(.*?)```", card, re.DOTALL))
    name, *arguments = shlex.split(command)
    assert name == "albert-tf" and "小明去了北京" in run(*arguments).stdout


@pytest.mark.text_ops
@pytest.mark.slow
def test_an_export_has_the_scores_of_these_weights_only(finetuned, tmp_path):
    for path, has_scores in (("1", True), ("2", False)):
        run("export", finetuned, tmp_path / path)
        card = (tmp_path / path / "README.md").read_text("utf-8")
        assert "tf.saved_model.load" in card and "差评" in card
        assert ("`accuracy`" in card) is has_scores
        small_classifier(2, labels=["差评", "好评"]).save_to_preset(finetuned)


@pytest.mark.parametrize(
    "save",
    [
        "preset",
        "checkpoint",
        pytest.param("saved_model", marks=[pytest.mark.text_ops, pytest.mark.nightly]),
    ],
)
def test_a_card_of_a_person_is_kept(tmp_path, save):
    model, folder = small_classifier(2), tmp_path / "model"
    write = {
        "preset": lambda: model.save_to_preset(folder),
        "checkpoint": lambda: albert_tf.save_checkpoint(model, folder, layout="keras"),
        "saved_model": lambda: albert_tf.export.saved_model(model, folder),
    }[save]
    card = folder / "README.md"
    # As a card of other facts, and in another encoding.
    for written in (f"{MARK} Old.".encode(), "我的模型".encode("gb18030")):
        write()
        assert MARK in card.read_text("utf-8") and "Old." not in card.read_text("utf-8")
        for file in {*folder.glob("*.h5"), *folder.glob("*.json")}:
            file.unlink()
        card.write_bytes(written)
    write()
    assert card.read_bytes() == written
