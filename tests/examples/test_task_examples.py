"""The examples that train: each is run as it is, and has learned."""

import collections
import pathlib
import runpy
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def of_classes(example):
    """Accuracy; that of the most frequent class, and its standard deviation."""
    truth = example.get("test_labels") or example["test"].labels
    share = max(collections.Counter(truth).values()) / len(truth)
    spread = (share * (1 - share) / len(truth)) ** 0.5
    return example["scores"]["accuracy"], share, spread


def of_label_lists(example):
    """Micro F1; that of giving every text all labels, of which recall is 1."""
    share = example["truth"].mean()
    spread = 0.5 / example["truth"].size ** 0.5
    return example["scores"]["micro_f1"], 2 * share / (1 + share), spread


def of_numbers(example):
    """Spearman's correlation; that of chance is 0."""
    return example["scores"]["spearman"], 0, 1 / len(example["test_numbers"]) ** 0.5


CASES = {
    "text_classification": of_classes,
    "topic_classification": of_classes,
    "spam": of_classes,
    "sentence_pairs": of_classes,
    "multi_label": of_label_lists,
    "similarity": of_numbers,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_example_learns(name, monkeypatch, capsys):
    script = EXAMPLES / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(script)])
    score, baseline, spread = CASES[name](runpy.run_path(str(script), run_name=name))
    assert score > baseline + 3 * spread
    assert "\t" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("file", "test"),
    [("topics/headlines", 48), ("spam/messages", 24), ("aspects/reviews", 120)]
    + [("questions/pairs", 240), ("scenes/pairs", 120)],
)
def test_what_is_tested_on_is_not_trained_on(file, test):
    path = EXAMPLES / "data" / f"{file}.tsv"
    _, *rows = path.read_text("utf-8").strip().split("\n")
    assert len(rows) == test * 5
    first = np.array([row.split("\t")[1].strip("。！") for row in rows])
    known, new = set(first[:-test]), set(first[-test:])
    assert not known & new
    if file == "aspects/reviews":
        known, new = (
            {c for text in part for c in text.split("，")} for part in (known, new)
        )
        assert not known & new
