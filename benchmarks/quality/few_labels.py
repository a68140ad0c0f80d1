"""Measure what a few labels add to a checkpoint that classifies without any.

    python -m benchmarks.quality.few_labels [--assets ../shared]
        [--data ChnSentiCorp ...] [--sizes 50 200 500 all] [--seeds 3] [--name after]

Runs `albert-tf finetune` from the checkpoint with its defaults, with dev examples split
off the labelled ones as it does, and compares the accuracy on test with that of
`albert-tf evaluate` on the checkpoint. No test example is used for tuning. The columns
of `results/few_labels.json` begin with `--name`, and an interrupted run resumes.
Many labels of the shops of NLPCC 2014 are wrong.
"""

import argparse
import csv
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.lib.harness import console, table_of, write_results
from benchmarks.lib.labelled_sets import chnsenticorp, choose, reviews, shops
from benchmarks.lib.paths import RESULTS

CHECKPOINT = "albert_micro_zh"
# Classifies reviews without labels.
HEAD = f"{CHECKPOINT}:sentiment"
ALBERT_TF = (sys.executable, "-m", "albert_tf")


DATA = {
    "ChnSentiCorp": chnsenticorp,
    "the demo's reviews": reviews,
    "NLPCC 2014 shops": shops,
}


def write_examples(path, x, y):
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = zip(y, x, strict=True)
        csv.writer(file, delimiter="\t").writerows([("label", "text"), *rows])


def run(*command):
    return subprocess.run(
        [*ALBERT_TF, *map(str, command)],
        check=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
    ).stdout


def fine_tune(train, test, size, seed, folder):
    """Return the test accuracy and the best epoch with the defaults of `finetune`."""
    write_examples(folder / "train.tsv", *choose(*train, size, seed, stratify=True))
    run(
        "finetune",
        "--checkpoint",
        CHECKPOINT,
        "--train",
        folder / "train.tsv",
        "--test",
        test,
        "--seed",
        seed,
        "--output",
        folder / "model",
    )
    metrics = json.loads((folder / "model" / "metrics.json").read_text("utf-8"))
    return metrics["test"]["accuracy"], metrics["best_epoch"]


def none_of(test):
    """Return the test accuracy of the checkpoint."""
    return json.loads(run("evaluate", HEAD, test, "--json"))["accuracy"]


def measure(arguments, rows, name):
    train, test = DATA[name](arguments.assets)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_examples(folder / "test.tsv", *test)
        for seed, size in itertools.product(
            range(1, arguments.seeds + 1), arguments.sizes
        ):
            row = rows.setdefault(f"{name}, {size} labels", {})
            if "none" not in row:
                row["none"] = none_of(folder / "test.tsv")
            column = f"{arguments.name} {seed}"
            if column not in row:
                few = folder / f"{size}-{seed}"
                few.mkdir()
                score, epoch = fine_tune(train, folder / "test.tsv", size, seed, few)
                row[column] = score
                row[f"epoch of {column}"] = epoch
                print(name, size, column, f"{score:.4f}, epoch {epoch}", flush=True)
            seeds = [value for x, value in row.items() if x.startswith(arguments.name)]
            row[f"mean {arguments.name}"] = float(np.mean(seeds))
            write_results("few_labels", {"rows": rows})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", type=pathlib.Path, default=pathlib.Path(default))
    parser.add_argument("--data", nargs="+", choices=DATA)
    parser.add_argument("--sizes", nargs="+", default=["50", "500"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--name", default="after", help="name of the columns")
    arguments = parser.parse_args()
    path = RESULTS / "few_labels.json"
    rows = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else {}
    for name in arguments.data or DATA:
        measure(arguments, rows, name)
    console.print(table_of(rows, rows[next(iter(rows))]))


if __name__ == "__main__":
    main()
