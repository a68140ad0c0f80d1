"""Measure the gain from pretraining: accuracy by the number of labelled examples.

Fine-tunes with the package's defaults from checkpoints and from random weights, with
the same examples and seeds, and fits a simple baseline: TF-IDF of characters with
logistic regression. The score is the accuracy on test texts that were not used to
choose any setting. Results are cached in the output file; finished runs are skipped.

Run: python benchmarks/pretraining_gain.py --start shipped examples/albert_micro_zh \\
    --data reviews examples/reviews --data ChnSentiCorp chnsenticorp_clean.zip
"""

import argparse
import csv
import io
import itertools
import json
import pathlib
import zipfile

import keras
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from albert_tf.files import complete_file, write_json
from albert_tf.models import AlbertBackbone, AlbertTextClassifier

BASELINE, RANDOM = "TF-IDF, logistic regression", "random weights"
BATCH_SIZE, SEQUENCE_LENGTH = 16, 128
# Smaller training sets get as many steps as this number of examples.
LEAST_EXAMPLES = 1500


def main():
    arguments = read_arguments()
    starts = dict(arguments.start)
    path = pathlib.Path(arguments.output)
    done = json.loads(path.read_text()) if path.exists() else {}
    data = {name: read(pathlib.Path(folder)) for name, folder in arguments.data}
    names = [*starts, RANDOM, BASELINE]
    # Seeds come first, so that an interrupted run has all settings for some seeds.
    runs = itertools.product(
        range(1, arguments.seeds + 1), data, arguments.sizes, names
    )
    for seed, name, size, start in () if arguments.report else runs:
        key = "/".join(map(str, (name, size, start, seed)))
        if key not in done:
            train, test = data[name]
            few = choose(*train, size, seed)
            done[key] = (
                baseline(few, test)
                if start == BASELINE
                else fine_tune(few, test, seed, starts, start, arguments.epochs)
            )
            write_json(path, done)
            print(key, f"{done[key]:.4f}", flush=True)
    for name in data:
        show(name, done, arguments, names)
    draw(path.with_suffix(".png"), data, done, arguments, names)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    pair = {"nargs": 2, "action": "append", "required": True}
    parser.add_argument("--start", **pair, metavar=("NAME", "CHECKPOINT"))
    parser.add_argument(
        "--data",
        **pair,
        metavar=("NAME", "PATH"),
        help="a directory or .zip with train.tsv and test.tsv, or one file with text "
        "and label, a fifth of which is held out for testing",
    )
    sizes = {"nargs": "+", "default": ["50", "200", "500", "all"]}
    parser.add_argument("--sizes", **sizes, help="numbers of labelled examples")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3, help="for large data sets")
    parser.add_argument("--report", action="store_true", help="only draw results")
    parser.add_argument("--output", default="pretraining_gain.json")
    return parser.parse_args()


def read(path):
    """Read the texts and labels of the training and the test set."""
    if path.suffix == ".zip":
        archive = zipfile.ZipFile(path)
        parts = [archive.read(f"{part}.tsv").decode() for part in ("train", "test")]
    elif path.is_dir():
        parts = [(path / f"{part}.tsv").read_text() for part in ("train", "test")]
    else:
        texts, labels = columns(path.read_text())
        parts = train_test_split(
            texts, labels, test_size=0.2, random_state=0, stratify=labels
        )
        return (parts[0], parts[2]), (parts[1], parts[3])
    return tuple(map(columns, parts))


def columns(text):
    """Read texts and labels from a table with a header, or `text`, `label` lines."""
    rows = list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
    header = rows[0]
    if "label" not in header:
        return [row[0] for row in rows], [row[-1] for row in rows]
    label = header.index("label")
    texts = header.index("text_a" if "text_a" in header else "text")
    return [row[texts] for row in rows[1:]], [row[label] for row in rows[1:]]


def choose(texts, labels, size, seed):
    """Draw `size` examples by seed, with the class frequencies of the whole set."""
    if size == "all" or int(size) >= len(texts):
        return texts, labels
    chosen, _ = train_test_split(
        range(len(texts)), train_size=int(size), random_state=seed, stratify=labels
    )
    return [texts[i] for i in chosen], [labels[i] for i in chosen]


def baseline(train, test):
    vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), sublinear_tf=True)
    model = make_pipeline(vectors, LogisticRegression(C=10, max_iter=1000))
    return model.fit(*train).score(*test)


def fine_tune(train, test, seed, starts, start, epochs):
    keras.utils.set_random_seed(seed)
    texts, labels = train
    names = sorted(set(labels))
    classifier = new_classifier(starts, start, names)
    classifier.compile()
    classifier.fit(
        texts,
        np.array([names.index(label) for label in labels]),
        batch_size=BATCH_SIZE,
        epochs=round(epochs * max(LEAST_EXAMPLES / len(texts), 1)),
        verbose=0,
    )
    found = classifier.predict(test[0], verbose=0).argmax(-1)
    return float(np.mean(np.array(names)[found] == np.array(test[1])))


def new_classifier(starts, start, names):
    # From either start, the mean is better here than the first token.
    pooling = {"pooling_mode": "mean"}
    options = {"num_classes": len(names), "sequence_length": SEQUENCE_LENGTH, **pooling}
    if start != RANDOM:
        return AlbertTextClassifier.from_checkpoint(starts[start], **options)
    # Random weights have the shape and vocabulary of the first checkpoint.
    first = AlbertTextClassifier.from_checkpoint(next(iter(starts.values())), **options)
    backbone = AlbertBackbone.from_config(first.backbone.get_config())
    return AlbertTextClassifier(backbone, len(names), first.preprocessor, **pooling)


def scores(name, size, start, done, seeds):
    """Return the scores of the finished seeds."""
    keys = ("/".join(map(str, (name, size, start, x + 1))) for x in range(seeds))
    return np.array([done[key] for key in keys if key in done])


def show(name, done, arguments, names):
    table = Table("examples", *names, title=f"{name}: test accuracy (number of seeds)")
    for size in arguments.sizes:
        found = [scores(name, size, start, done, arguments.seeds) for start in names]
        table.add_row(size, *map(cell, found))
    Console(width=120).print(table)


def cell(found):
    spread = f" ± {found.std():.3f}" if len(found) > 1 else ""
    return f"{found.mean():.3f}{spread} ({len(found)})" if len(found) else "-"


def draw(path, data, done, arguments, names):
    """Plot mean and spread by the number of examples, one panel per data set."""
    figure = Figure(figsize=(4 * len(data), 3.6), layout="constrained")
    axes = figure.subplots(1, len(data), squeeze=False)[0]
    for axis, (name, ((texts, _), _)) in zip(axes, data.items(), strict=True):
        counts = [len(texts) if x == "all" else int(x) for x in arguments.sizes]
        for start in names:
            found = [
                scores(name, x, start, done, arguments.seeds) for x in arguments.sizes
            ]
            mean, spread = (np.array([f(x) for x in found]) for f in (np.mean, np.std))
            style = "--" if start == BASELINE else "-"
            axis.plot(counts, mean, style, marker="o", markersize=4, label=start)
            axis.fill_between(counts, mean - spread, mean + spread, alpha=0.15)
        axis.set(xscale="log", title=name, xlabel="labelled examples")
        axis.set_xticks(counts, map(str, counts))
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy")
    axes[-1].legend()
    with complete_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")


if __name__ == "__main__":
    main()
