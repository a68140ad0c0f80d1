"""Each script of `examples/` runs, on its data or a part of it, and learns."""

import collections
import pathlib
import runpy
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
# They train for many steps.
pytestmark = [
    pytest.mark.traced,
    pytest.mark.filterwarnings("ignore:.* texts are longer than"),
]


def part_of(data, rows, folder):
    """Write the first rows of each file of the data, with its header."""
    source = EXAMPLES / data
    for file in [source] if source.is_file() else sorted(source.glob("*.tsv")):
        lines = file.read_text("utf-8").splitlines(True)[: rows + 1]
        (folder / file.name).write_text("".join(lines), "utf-8")
    return folder / source.name if source.is_file() else folder


@pytest.fixture
def run(monkeypatch):
    """Run a script and return its globals, or what its `main` returns for a folder."""

    def run(name, *arguments, main=False):
        script = EXAMPLES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        found = runpy.run_path(str(script), run_name=name)
        return found["main"](*arguments) if main else found

    return run


# === Scripts that train: better than a baseline, by more than chance ===


def of_classes(example):
    """Accuracy against that of the most frequent class."""
    truth = example.get("test_labels") or example["test"].labels
    share = max(collections.Counter(truth).values()) / len(truth)
    spread = (share * (1 - share) / len(truth)) ** 0.5
    return example["scores"]["accuracy"], share + 3 * spread


def of_label_lists(example):
    """Micro F1 against that of all labels for every text, whose recall is 1."""
    share = example["truth"].mean()
    spread = 0.5 / example["truth"].size ** 0.5
    return example["scores"]["micro_f1"], 2 * share / (1 + share) + 3 * spread


def of_numbers(example):
    """Spearman's correlation against 0."""
    spread = 1 / len(example["test_numbers"]) ** 0.5
    return example["scores"]["spearman"], 3 * spread


def of_summaries(example):
    scores = {name: x["rouge_l"] for name, x in example["scores"].items()}
    return scores["model"], scores["first sentence"] + 0.25


# By script: a function that returns the score and what it should exceed, and, to run on
# a part of the data only, their path and the number of rows.
TRAINING = {
    "text_classification": (of_classes, "reviews", 800),
    "topic_classification": (of_classes, "data/topics/headlines.tsv", 150),
    "spam": (of_classes,),
    "sentence_pairs": (of_classes,),
    "multi_label": (of_label_lists, "data/aspects/reviews.tsv", 400),
    "similarity": (of_numbers, "data/scenes/pairs.tsv", 300),
    # Perplexity, the lower the better.
    "fill_mask": (lambda x: (-x["after"][1], -0.7 * x["before"][1]),),
    "sentence_embeddings": (lambda x: (x["after"], x["before"] + 0.05),),
    "few_shot": (lambda x: (x["after"], max(0.6, x["before"] + 0.1)),),
    "distillation": (
        *(lambda x: (x["after"][0], max(0.6, x["before"][0] + 0.05)), "reviews", 1000),
    ),
    "summarization": (of_summaries,),
}
# The quickest run in CI, the others every night.
QUICK = ("spam", "summarization", "text_classification", "topic_classification")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=pytest.mark.slow if x in QUICK else pytest.mark.nightly)
        for x in TRAINING
    ],
)
def test_a_script_learns(name, run, tmp_path, capsys):
    scores, *data = TRAINING[name]
    score, baseline = scores(run(name, *([part_of(*data, tmp_path)] if data else [])))
    assert score > baseline
    assert capsys.readouterr().out.count("\n") > 1


@pytest.mark.nightly
def test_spelling_correction(run, tmp_path):
    data = part_of("data/spelling", 320, tmp_path)
    files = [data / f"{name}.tsv" for name in ("train", "test")]
    scores = run("spelling_correction", *files)["scores"]
    # Whoever changes nothing gets 0.
    assert scores["correction_f1"] > 0.7 and scores["false_positive_rate"] < 0.3


# Looking up the names of the training texts has an F1 of 0.447.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "data", "gain"),
    [
        ("question_answering", "questions", lambda x: x[0]["f1"] - x[1]["f1"] - 50),
        ("multiple_choice", "choices", lambda x: x[0] - x[1] - 0.3),
        ("token_classification", "entities", lambda x: x["f1"] - 0.55),
    ],
)
def test_a_script_with_a_main_learns(name, data, gain, run):
    assert gain(run(name, EXAMPLES / "data" / data, main=True)) > 0


# === Other scripts ===


def test_make_vocabulary(run, tmp_path):
    (tmp_path / "a.txt").write_text("我们今天去公园。Café 龘\n" * 2, "utf-8")
    run("make_vocabulary", tmp_path / "vocab.txt", tmp_path / "a.txt")["main"]()
    tokens = (tmp_path / "vocab.txt").read_text("utf-8").split("\n")
    assert tokens[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # As often as --min-count, or common.
    assert {"我", "园", "e", "##e"} <= set(tokens) and "龘" not in tokens
