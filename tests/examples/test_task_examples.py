"""The examples that train: run on their data or a part of it, they have learned."""

import collections
import pathlib
import runpy
import sys

import numpy as np
import pytest
from example_data import first_rows

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


# How it is scored, its data, and so many rows of them that it learns something.
CASES = {
    "text_classification": (of_classes, "reviews", 800),
    "topic_classification": (of_classes, "data/topics/headlines.tsv", 150),
    # Without a file, as of half of theirs they learn nothing.
    "spam": (of_classes, None, 0),
    "sentence_pairs": (of_classes, None, 0),
    "multi_label": (of_label_lists, "data/aspects/reviews.tsv", 400),
    "similarity": (of_numbers, "data/scenes/pairs.tsv", 300),
}


def part_of(data, rows, folder):
    """The arguments with which an example runs on the first rows of its data."""
    if data is None:
        return []
    if (EXAMPLES / data).is_file():
        return [str(first_rows(data, rows, folder / "data.tsv"))]
    for name, count in (("train", rows), ("test", 360)):
        first_rows(f"{data}/{name}.tsv", count, folder / f"{name}.tsv")
    return [str(folder)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_example_learns(name, monkeypatch, capsys, tmp_path):
    script = EXAMPLES / f"{name}.py"
    scores_of, *data = CASES[name]
    monkeypatch.setattr(sys, "argv", [str(script), *part_of(*data, tmp_path)])
    score, baseline, spread = scores_of(runpy.run_path(str(script), run_name=name))
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
