"""The examples of masks, vectors and wrong characters learn, on parts of their data."""

import pathlib
import runpy
import sys

import pytest
from example_data import first_rows

from albert_tf.data import read_labelled_texts, read_spelling

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
QUESTIONS = EXAMPLES / "data/intents/questions.tsv"


@pytest.fixture
def run(monkeypatch):
    def run(name, *arguments):
        script = EXAMPLES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        return runpy.run_path(str(script), run_name=name)

    return run


@pytest.mark.slow
def test_fill_mask(run, capsys, tmp_path):
    # Questions of eight kinds.
    lines = read_labelled_texts(QUESTIONS).x[: 8 * 9]
    (tmp_path / "lines.txt").write_text("\n".join(lines), "utf-8")
    example = run("fill_mask", tmp_path / "lines.txt")
    (loss, perplexity), (new_loss, new_perplexity) = example["before"], example["after"]
    assert new_loss < 0.9 * loss and new_perplexity < 0.7 * perplexity
    assert "房间很干净，服务也热情。" in capsys.readouterr().out


@pytest.mark.slow
def test_sentence_embeddings(run):
    example = run("sentence_embeddings")
    assert example["after"] > example["before"] + 0.05


@pytest.mark.slow
def test_few_shot(run):
    example = run("few_shot")
    # Of 48 texts of 16 classes chance gets 3.
    assert example["after"] > max(0.6, example["before"] + 0.1)


@pytest.mark.slow
def test_spelling_correction(run, tmp_path):
    files = [
        first_rows(f"data/spelling/{name}", rows, tmp_path / name, header=False)
        for name, rows in (("train.tsv", 320), ("test.tsv", 60))
    ]
    scores = run("spelling_correction", *files)["scores"]
    # Whoever changes nothing gets 0.
    assert scores["correction_f1"] > 0.7 and scores["false_positive_rate"] < 0.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* texts are longer than")
def test_distillation(run, tmp_path):
    for name, rows in (("train", 1000), ("test", 360)):
        first_rows(f"reviews/{name}.tsv", rows, tmp_path / f"{name}.tsv")
    example = run("distillation", tmp_path)
    (before, _), (after, agreement) = example["before"], example["after"]
    # Of 360 reviews as many are good as bad.
    assert after > max(0.6, before + 0.05) and agreement > 0.75


@pytest.mark.slow
def test_summarization(run):
    scores = run("summarization")["scores"]
    baselines = (scores["first sentence"], scores["centroid"])
    assert scores["model"]["rouge_l"] > max(x["rouge_l"] for x in baselines) + 0.2


def test_what_is_tested_on_is_not_trained_on():
    texts = read_labelled_texts(QUESTIONS).x
    assert len(set(texts)) == len(texts) == 16 * 9
    train, test = (
        read_spelling(EXAMPLES / "data/spelling" / f"{name}.tsv")
        for name in ("train", "test")
    )
    assert (len(train[0]), len(test[0])) == (480, 120)
    assert not set(train[1]) & set(test[1])
