"""Check that the defaults of `albert-tf finetune` train every size.

Fine-tunes a classifier on the demo's reviews with no option but the size, from random
weights and from the shipped checkpoint, and prints its test accuracy next to that of
the most frequent class. Results are cached in OUTPUT; finished runs are skipped.

Run: python benchmarks/defaults.py OUTPUT --sizes albert_micro_zh albert_tiny_zh
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

from albert_tf.data import read_labelled_texts
from albert_tf.files import write_json
from zh.sizes import SIZES

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
SHIPPED = "albert_micro_zh"


def main():
    arguments = read_arguments()
    results = arguments.output / "results.json"
    done = json.loads(results.read_text("utf-8")) if results.exists() else {}
    labels = read_labelled_texts(EXAMPLES / "reviews" / "test.tsv").labels
    guessing = max(collections.Counter(labels).values()) / len(labels)
    for size in arguments.sizes:
        checkpoint, vocabulary = EXAMPLES / SHIPPED, EXAMPLES / SHIPPED / "vocab.txt"
        starts = {"random weights": ("--config", size, "--vocab", vocabulary)}
        if size == SHIPPED:
            starts["its weights"] = ("--checkpoint", checkpoint)
        for start, options in starts.items():
            name = f"{size}, {start}"
            if name not in done:
                done[name] = fine_tune(arguments.output / name, options)
                write_json(results, done)
    table = Table("size, from", "accuracy", "guessing", "minutes")
    for name, (accuracy, seconds) in done.items():
        row = f"{accuracy:.3f}", f"{guessing:.3f}", f"{seconds / 60:.1f}"
        table.add_row(name, *row)
    Console(width=90).print(table)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    sizes = [SHIPPED, "albert_tiny_zh", "albert_base_zh"]
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=sizes)
    return parser.parse_args()


def fine_tune(output, options):
    """Fine-tune a classifier; return its test accuracy and the seconds it took."""
    files = {x: EXAMPLES / "reviews" / f"{x}.tsv" for x in ("train", "dev", "test")}
    given = [str(x) for name, file in files.items() for x in (f"--{name}", file)]
    command = [sys.executable, "-m", "albert_tf", "finetune", *map(str, options)]
    began = time.monotonic()
    subprocess.run([*command, *given, "--output", str(output)], check=True)
    metrics = json.loads((output / "metrics.json").read_text("utf-8"))
    return metrics["test"]["accuracy"], time.monotonic() - began


if __name__ == "__main__":
    main()
