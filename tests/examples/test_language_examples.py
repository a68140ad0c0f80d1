"""The examples of masks, vectors and wrong characters: run as they are, they learn."""

import pathlib
import runpy
import sys

import pytest

from albert_tf.data import read_labelled_texts, read_spelling

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch):
    def run(name):
        script = EXAMPLES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script)])
        return runpy.run_path(str(script), run_name=name)

    return run


@pytest.mark.slow
def test_fill_mask(run, capsys):
    example = run("fill_mask")
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
def test_spelling_correction(run):
    scores = run("spelling_correction")["scores"]
    # Whoever changes nothing gets 0.
    assert scores["correction_f1"] > 0.7 and scores["false_positive_rate"] < 0.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* texts are longer than")
def test_distillation(run):
    example = run("distillation")
    (before, _), (after, agreement) = example["before"], example["after"]
    # Of 360 reviews as many are good as bad.
    assert after > max(0.6, before + 0.05) and agreement > 0.75


@pytest.mark.slow
def test_summarization(run):
    scores = run("summarization")["scores"]
    baselines = (scores["first sentence"], scores["centroid"])
    assert scores["model"]["rouge_l"] > max(x["rouge_l"] for x in baselines) + 0.2


def test_what_is_tested_on_is_not_trained_on():
    texts = read_labelled_texts(EXAMPLES / "data/intents/questions.tsv").x
    assert len(set(texts)) == len(texts) == 16 * 9
    train, test = (
        read_spelling(EXAMPLES / "data/spelling" / f"{name}.tsv")
        for name in ("train", "test")
    )
    assert (len(train[0]), len(test[0])) == (480, 120)
    assert not set(train[1]) & set(test[1])
