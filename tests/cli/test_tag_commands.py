"""`--task token-classification`: from files of tags to entities."""

import json
import shutil

import pytest
from command_line import run
from conftest import GOLDEN

from albert_tf.data import read_tagged_texts
from albert_tf.evaluation import entity_scores
from albert_tf.models import AlbertTokenClassifier

pytest.importorskip("seqeval", reason="seqeval is not installed")

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = ["小/B-PER 明/I-PER 在/O 北/B-LOC 京/I-LOC", "我/O 见/O 小/B-PER 红/I-PER"]
SENTENCES += ["上/B-LOC 海/I-LOC 很/O 大/O", "😀/O 好/O 的/O"]


def write(path, sentences):
    rows = (sentence.split() for sentence in sentences)
    lines = ["\n".join(cell.replace("/", " ") for cell in row) for row in rows]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    write(folder / "train.txt", SENTENCES * 8)
    write(folder / "dev.txt", SENTENCES)
    shutil.copytree(GOLDEN / "google_v2", folder / "checkpoint")
    characters = sorted({x[0] for row in SENTENCES for x in row.split()} - {"😀"})
    tokens = [*SPECIAL, *characters]
    tokens += [f"[unused{i}]" for i in range(120 - len(tokens))]
    vocabulary = folder / "checkpoint" / "vocab.txt"
    vocabulary.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    result = run(
        *("finetune", "--task", "token-classification"),
        *("--checkpoint", folder / "checkpoint", "--sequence-length", 12),
        *("--train", folder / "train.txt", "--dev", folder / "dev.txt"),
        *("--output", folder / "model", "--epochs", 3, "--learning-rate", 3e-3),
    )
    (folder / "printed").write_text(result.stdout, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_finetune_keeps_the_epoch_with_the_best_f1(folder):
    printed = (folder / "printed").read_text("utf-8")
    assert "2 labels: LOC, PER. train 32, dev 4 texts" in printed
    metrics = json.loads((folder / "model" / "metrics.json").read_text("utf-8"))
    history = metrics["history"]["val_f1"]
    assert metrics["dev"]["f1"] == max(history)
    assert metrics["classes"] == ["LOC", "PER"]
    assert f"dev f1 {max(history):.4f}" in printed
    model = AlbertTokenClassifier.from_preset(str(folder / "model"))
    data = read_tagged_texts(folder / "dev.txt")
    scores = entity_scores(data.spans, model.predict(data.x, verbose=0))
    assert scores["f1"] == max(history)


@pytest.mark.slow
def test_evaluate_and_predict(folder):
    model = AlbertTokenClassifier.from_preset(str(folder / "model"))
    data = read_tagged_texts(folder / "dev.txt")
    found = model.predict(data.x, verbose=0)
    expected = entity_scores(data.spans, found)
    result = run("evaluate", folder / "model", folder / "dev.txt", "--json")
    assert json.loads(result.stdout) == expected
    shown = run("evaluate", folder / "model", folder / "dev.txt").stdout
    assert f"{expected['f1']:.4f}" in shown and "PER" in shown and "all" in shown

    answers = run("predict", folder / "model", "--json", *data.x).stdout.splitlines()
    for text, row, line in zip(data.x, found, answers, strict=True):
        entities = json.loads(line)
        spans = [(x["start"], x["end"], x["entity_group"]) for x in entities]
        assert spans == row
        assert all(text[x["start"] : x["end"]] == x["word"] for x in entities)
    rows = run("predict", folder / "model", *data.x).stdout.splitlines()
    words = " ".join(f"{data.x[0][a:b]}/{label}" for a, b, label in found[0])
    assert rows[0] == f"{words}\t{data.x[0]}"


def test_what_is_refused(folder):
    (folder / "other.txt").write_text("中 B-ORG\n", encoding="utf-8")
    (folder / "none.txt").write_text("中 O\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other.txt has the labels \['ORG'\]"):
        run("evaluate", folder / "model", folder / "other.txt")
    with pytest.raises(ValueError, match="No text of .*none.txt has an entity"):
        run(
            *("finetune", "--task", "token-classification", "--train"),
            *(folder / "none.txt", "--dev", folder / "dev.txt", "--output", "x"),
        )


def test_export_names_what_it_gives(folder):
    result = run("export", folder / "model", folder / "served" / "1")
    printed = " ".join(result.stdout.split())
    assert "takes text and gives spans, labels, scores." in printed
