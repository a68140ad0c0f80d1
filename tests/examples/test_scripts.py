"""Each script of `examples/` runs, on its data or a part of it, and learns."""

import ast
import collections
import pathlib
import re
import runpy
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
# They train for many steps.
TRAINS = [
    pytest.mark.traced,
    pytest.mark.filterwarnings("ignore:.* texts are longer than"),
]


def parts_of(files, rows, folder):
    """Write the first rows of each file, with its header, and return the paths."""
    for file in files:
        lines = (EXAMPLES / file).read_text("utf-8").splitlines(True)[: rows + 1]
        (folder / pathlib.Path(file).name).write_text("".join(lines), "utf-8")
    return [folder / pathlib.Path(file).name for file in files]


@pytest.fixture
def run(monkeypatch):
    """Run a script and return its globals."""

    def run(name, *arguments):
        script = EXAMPLES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        return runpy.run_path(str(script), run_name="__main__")

    return run


# === The score of a script, and what it should exceed by more than chance ===


def of_classes(example):
    """Accuracy against that of the most frequent class."""
    truth = example["test_labels"]
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
    spread = 1 / len(example["predicted"]) ** 0.5
    return example["scores"]["spearman"], 3 * spread


def of_summaries(example):
    scores = {name: x["rouge_l"] for name, x in example["scores"].items()}
    return scores["model"], scores["first sentence"] + 0.25


def of_spelling(example):
    """Whoever changes nothing has the F1 0."""
    scores = example["scores"]
    return scores["correction_f1"] - scores["false_positive_rate"], 0.4


# By script: the function that returns the score and what it should exceed, and, to run
# on a part of the data only, the number of rows and the files.
SCRIPTS = {
    "convert_checkpoint": (lambda x: (-max(x["differences"]), -1e-5),),
    "distillation": (lambda x: (x["after"], max(0.6, x["before"] + 0.05)),),
    # Perplexity, the lower the better.
    "fill_mask": (lambda x: (-x["after"][1], -0.7 * x["before"][1]),),
    "keras_fit": (lambda x: (x["scores"]["accuracy"], 0.6),),
    "lora": (lambda x: (x["accuracy"] - max(x["differences"]), 0.6),),
    "multi_label": (of_label_lists, 400, "data/aspects/reviews.tsv"),
    "multiple_choice": (lambda x: (x["accuracy"], x["chance"] + 0.3),),
    "onnx_inference": (lambda x: ("without TensorFlow" in x["output"].stdout, 0.5),),
    "pandas_csv": (lambda x: (x["is_right"].mean(), 0.6),),
    "pipelines": (lambda x: (x["answers"][0][0]["label"] == "保修", 0.5),),
    "question_answering": (lambda x: (x["scores"]["f1"], x["first"]["f1"] + 50),),
    "sentence_embeddings": (
        lambda x: (x["after"], max(x["before"], x["baseline"].score(*x["test"]))),
    ),
    "similarity": (of_numbers, 300, "data/scenes/pairs.tsv"),
    "spelling_correction": (of_spelling,),
    "summarization": (of_summaries,),
    "text_classification": (of_classes, 150, "data/topics/headlines.tsv"),
    # Looking up the names of the training texts has an F1 of 0.447.
    "token_classification": (lambda x: (x["scores"]["f1"], 0.55),),
}
# The quickest run in CI, the others every night.
QUICK = ("convert_checkpoint", "pipelines")
# Run by other tests and by `make demo`.
OTHERS = ("convert_tfrecords", "demo", "make_vocabulary", "serve", "serving_client")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            x, marks=[*TRAINS, pytest.mark.slow if x in QUICK else pytest.mark.nightly]
        )
        for x in SCRIPTS
    ],
)
def test_a_script_learns(name, run, tmp_path, capsys):
    scores, *data = SCRIPTS[name]
    files = parts_of(data[1:], data[0], tmp_path) if data else []
    score, baseline = scores(run(name, *files))
    assert score > baseline
    assert capsys.readouterr().out.count("\n") > 1


def test_the_index_lists_every_script():
    """The README has the first line of each docstring, and links to existing pages."""
    scripts = sorted(EXAMPLES.glob("*.py")) + sorted(EXAMPLES.glob("advanced/*.py"))
    assert {*SCRIPTS, *OTHERS} == {x.stem for x in EXAMPLES.glob("*.py")}
    for language in ("", ".zh"):
        text = (EXAMPLES / f"README{language}.md").read_text("utf-8")
        rows = re.findall(r"^\| \[`(.*?\.py)`\]\((.*?)\) \| (.*?) \|", text, re.M)
        assert sorted(row[0] for row in rows) == sorted(
            x.relative_to(EXAMPLES).as_posix() for x in scripts
        )
        for name, link, shown in rows:
            title = ast.get_docstring(ast.parse((EXAMPLES / name).read_text("utf-8")))
            first = re.split(rf": {pathlib.Path(name).name}|\.?\n", title)[0]
            assert link == name and (language or shown == first)
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (EXAMPLES / link).exists(), link


def test_make_vocabulary(run, tmp_path):
    (tmp_path / "a.txt").write_text("我们今天去公园。Café 龘\n" * 2, "utf-8")
    run("make_vocabulary", tmp_path / "vocab.txt", tmp_path / "a.txt")
    tokens = (tmp_path / "vocab.txt").read_text("utf-8").split("\n")
    assert tokens[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # As often as --min-count, or common.
    assert {"我", "园", "e", "##e"} <= set(tokens) and "龘" not in tokens
