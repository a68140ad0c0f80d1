"""Measure what texts without labels add to few labels, beside TF-IDF.

    python -m benchmarks.quality.unlabelled [--assets ../shared]
        [--data headlines ...] [--labels 50 200 500 all] [--texts 0 1000 6000]
        [--seeds 1 2 3]

Runs `albert-tf finetune` with its defaults from the bundled checkpoint, with dev
examples split off the labelled ones as it does. TF-IDF with logistic regression is that
of the same command: the same labels, the same test. `finetune` ends with a temperature;
the calibration error is that of `evaluate`. An interrupted run resumes.
"""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import tempfile

import numpy as np

from benchmarks.lib.harness import console, table_of, write_results
from benchmarks.lib.labelled_sets import headlines, reviews, select
from benchmarks.lib.paths import RESULTS
from benchmarks.quality.few_labels import CHECKPOINT, run, write_examples

BASELINE = "TF-IDF with logistic regression"
# Texts to test; the rest of a set has labels or none.
TEST = {"headlines": 3_000, "the demo's reviews": 500}
DATA = {"headlines": headlines, "the demo's reviews": reviews}


@dataclasses.dataclass(frozen=True)
class Parts:
    """A set, dealt by a seed."""

    train: tuple
    test: tuple
    unlabelled: list


def deal(name, assets, labels, texts, seed):
    """Return the parts of a set; more labels or texts contain fewer."""
    (first, first_y), (second, second_y) = DATA[name](assets)
    x, y = first + second, first_y + second_y
    rows = np.random.default_rng(seed).permutation(len(y))
    test, rest = rows[: TEST[name]], rows[TEST[name] :]
    count = len(rest) if labels == "all" else int(labels)
    train, others = rest[:count], rest[count : count + texts]
    return Parts(select(x, y, train), select(x, y, test), [x[i] for i in others])


def fine_tune(parts, seed, folder):
    """Return the scores of the command and of TF-IDF on test."""
    write_examples(folder / "train.tsv", *parts.train)
    write_examples(folder / "test.tsv", *parts.test)
    command = ["finetune", "--checkpoint", CHECKPOINT, "--seed", seed]
    command += ["--train", folder / "train.tsv", "--test", folder / "test.tsv"]
    if parts.unlabelled:
        (folder / "texts.txt").write_text("\n".join(parts.unlabelled), "utf-8")
        command += ["--unlabelled", folder / "texts.txt"]
    run(*command, "--output", folder / "model")
    metrics = json.loads((folder / "model" / "metrics.json").read_text("utf-8"))
    scores = run("evaluate", folder / "model", folder / "test.tsv", "--json")
    row = {
        "accuracy": metrics["test"]["accuracy"],
        "TF-IDF": metrics["baselines"][BASELINE]["test"]["accuracy"],
        "ece": json.loads(scores)["ece"],
    }
    if "own_labels" in metrics:
        row["own labels kept"] = metrics["own_labels"]["kept"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", type=pathlib.Path, default=pathlib.Path(default))
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--labels", nargs="+", default=["50", "200", "500", "all"])
    parser.add_argument("--texts", nargs="+", type=int, default=[0, 1_000, 6_000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    arguments = parser.parse_args()
    path = RESULTS / "unlabelled.json"
    rows = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else {}
    cases = itertools.product(
        arguments.data, arguments.seeds, arguments.labels, arguments.texts
    )
    for name, seed, labels, texts in cases:
        parts = deal(name, arguments.assets, labels, texts, seed)
        title = f"{name}, {labels} labels, {len(parts.unlabelled)} texts, seed {seed}"
        # With all labels there may be no text without one.
        if title in rows or (texts and not parts.unlabelled):
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows[title] = fine_tune(parts, seed, pathlib.Path(folder))
        print(title, rows[title], flush=True)
        write_results("unlabelled", {"rows": rows})
    console.print(table_of(rows, rows[next(iter(rows))]))


if __name__ == "__main__":
    main()
