"""Vectors and spelling on the command line."""

import json

import command_line
import numpy as np
import pytest
from small_classifier import VOCABULARY

from albert_tf.models import AlbertSpellingCorrector, AlbertTextEmbedder

CONFIG = {
    "vocab_size": len(VOCABULARY),
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "embedding_size": 8,
    "hidden_size": 12,
    "intermediate_size": 20,
    "hidden_act": "gelu",
    "max_position_embeddings": 29,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "ln_type": "preln",
}
SCORED = "score\ttext\ttext_b\n" + "5\t好吃\t很好吃\n0\t天地\t你好\n2\t鸡蛋\t想吃\n" * 4
SPELLED = "我很吃\t我很好\n很好\t很好\n他很不吗\t他很好吗\n" * 4


def run(*arguments, input=None):
    return command_line.run(*arguments, input=input).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), "utf-8")
    (folder / "scored.tsv").write_text(SCORED, "utf-8")
    (folder / "spelled.tsv").write_text(SPELLED, "utf-8")
    return folder


def finetune(folder, task, file):
    output = folder / f"{task} of {file}"
    data = folder / file
    run(
        *("finetune", "--task", task, "--train", data, "--dev", data),
        *("--config", folder / "config.json", "--vocab", folder / "vocab.txt"),
        *("--output", output, "--epochs", 2, "--learning-rate", 0.01),
    )
    return output, json.loads((output / "metrics.json").read_text("utf-8"))


@pytest.mark.slow
def test_text_embedding(folder, tmp_path):
    output, metrics = finetune(folder, "text-embedding", "scored.tsv")
    report = json.loads(run("evaluate", output, folder / "scored.tsv", "--json"))
    assert report.keys() == {"pearson", "spearman"}
    assert report == pytest.approx({x: metrics["dev"][x] for x in report}, abs=1e-5)
    assert metrics["dev"]["spearman"] == max(metrics["history"]["val_spearman"])
    vectors = AlbertTextEmbedder.from_preset(str(output)).encode_text(["好吃", "想吃"])
    (line,) = run("predict", output, "好吃\t想吃").splitlines()
    assert line == f"{np.dot(*vectors):.4f}\t好吃\t想吃"
    with pytest.raises(ValueError, match="with a tab between them"):
        run("predict", output, "好吃")
    printed = run("export", output, tmp_path / "1")
    assert "takes text and gives embedding" in " ".join(printed.split())


@pytest.mark.slow
def test_spelling_correction(folder):
    output, metrics = finetune(folder, "spelling-correction", "spelled.tsv")
    best = metrics["dev"]["correction_f1"]
    assert best == max(metrics["history"]["val_correction_f1"])
    assert f"correction_f1 {best:.4f}" in run(
        "evaluate", output, folder / "spelled.tsv"
    )
    expected = AlbertSpellingCorrector.from_preset(str(output)).correct(
        ["我很吃", "好"]
    )
    lines = run("predict", output, "--json", input="我很吃\n好\n").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(json.dumps(expected))
    (line,) = run("predict", output, "我很吃").splitlines()
    assert line.split("\t")[::2] == [expected[0]["target"], "我很吃"]


def test_files_that_are_not_of_the_task(folder):
    with pytest.raises(ValueError, match="Line 1 of .* has 3 columns"):
        finetune(folder, "spelling-correction", "scored.tsv")
    (folder / "bad.tsv").write_text("label\ttext\ttext_b\nx\t好\t坏\n", "utf-8")
    with pytest.raises(ValueError, match="'x' of line 2 of .* is no finite number"):
        finetune(folder, "text-embedding", "bad.tsv")


ARTICLES = [
    {"article": "天地上下。我想吃鸡蛋。你来吗？中文天地！", "summary": "想吃鸡蛋"},
    {"article": ["你好吗？", "天地上下。", "他想吃鸡蛋。"], "summary": "吃鸡蛋"},
] * 4


def test_summaries(folder):
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in ARTICLES)
    (folder / "articles.jsonl").write_text(lines, "utf-8")
    model, metrics = finetune(folder, "summarization", "articles.jsonl")
    assert {"rouge_1", "rouge_2", "rouge_l"} < metrics["dev"].keys()
    values = json.loads(run("evaluate", model, folder / "articles.jsonl", "--json"))
    assert values["rouge_l"] == pytest.approx(metrics["dev"]["rouge_l"])
    assert values["baselines"].keys() == {"first sentences", "centroid"}
    printed = run("evaluate", model, folder / "articles.jsonl")
    assert printed.startswith("model: rouge_1 ") and "centroid: rouge_1 " in printed
    article = ARTICLES[0]["article"]
    answer = json.loads(run("predict", model, "--json", article))
    parts = [article[start:end] for start, end, _ in answer["sentences"]]
    assert len(parts) == 3 and "".join(parts) == answer["summary"]
    assert run("predict", model, article) == f"{answer['summary']}\t{article}\n"
