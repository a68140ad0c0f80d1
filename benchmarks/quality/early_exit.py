"""Accuracy against time of texts that leave the encoder early, on ChnSentiCorp.

    python -m benchmarks.quality.early_exit /path/of/chnsenticorp_clean.zip
        [--layers 12]

Fine-tunes an `AlbertEarlyExitClassifier` and a plain classifier from the same weights,
and predicts the test texts with each patience in turn. The time is that from strings to
outputs; the speed, times that of the plain model in the same round.

`never` is a patience that no text can meet: all texts go through all layers, and its
ratio is 1 on a quiet machine. Otherwise the script prints a warning.
`layers`, the layers that a text goes through on average, depends on no clock, and
`cpu_ratio`, by processor time, on little else.
"""

import argparse
import functools
import json
import pathlib

from albert_tf.models import AlbertTextClassifier
from albert_tf.tools import AlbertEarlyExitClassifier
import keras
import matplotlib
import numpy as np

from benchmarks.lib.compared_texts import read_reviews
from benchmarks.lib.harness import (
    compared,
    console,
    in_turn,
    matrix_rate,
    table_of,
    write_results,
)
from benchmarks.lib.paths import MICRO, RESULTS

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

# How far the control may be off 1.
TOLERANCE = 0.05
PATIENCES = {f"patience {n}": n for n in (1, 2, 3, 4, 6)}


def build(arguments, cls):
    """A classifier whose block runs as often as asked: all layers are one."""
    folder = pathlib.Path(arguments.checkpoint)
    config = json.loads(next(folder.glob("*config*.json")).read_text("utf-8"))
    if arguments.layers:
        config["num_hidden_layers"] = arguments.layers
    keras.utils.set_random_seed(arguments.seed)
    return cls.from_checkpoint(
        folder,
        config=config,
        num_classes=2,
        sequence_length=arguments.sequence_length,
    )


def mean_layers(model, x, patience):
    """The layers that a text goes through, from the hidden states of all of them."""
    last, counts = model.backbone.num_layers, []
    network = model.backbone.with_intermediates()
    for start in range(0, len(x), 64):
        features = model.preprocessor(x[start : start + 64])
        mask = features["padding_mask"]
        states = network(features)["hidden_states"][1:]
        left = np.full(len(mask), last)
        label = np.full(len(mask), -1)
        confirmed = np.zeros(len(mask), int)
        for number, state in enumerate(states[:-1], start=1):
            outputs = np.array(model.classify_states([state], mask))
            same = outputs.argmax(-1) == label
            label = outputs.argmax(-1)
            confirmed = np.where(same, confirmed + 1, 0)
            left = np.where(confirmed >= patience, np.minimum(left, number), left)
        counts.extend(left)
    return float(np.mean(counts))


def draw(rows, speed, path):
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for kind in ("plain", "joint", "patience"):
        points = [row for name, row in rows.items() if name.startswith(kind)]
        points.sort(key=lambda row: row[speed])
        marker = {"plain": "*", "joint": "P"}.get(kind, "o-")
        axes.plot(
            [row[speed] for row in points],
            [row["accuracy"] for row in points],
            marker,
            label=kind,
        )
    clock = {"ratio": "", "cpu_ratio": ", by processor time"}[speed]
    axes.set_xlabel(f"times as fast as the plain model{clock}")
    axes.set_ylabel("accuracy")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="chnsenticorp_clean.zip")
    parser.add_argument("--checkpoint", default=str(MICRO))
    parser.add_argument("--layers", type=int, help="by default the checkpoint's")
    parser.add_argument("--train", type=int, help="examples, by default all")
    parser.add_argument("--test", type=int, help="examples, by default all")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = read_arguments()
    x, y = read_reviews(arguments.data, "train.tsv", arguments.train)
    test_x, test_y = read_reviews(arguments.data, "test.tsv", arguments.test)
    models = {}
    classes = {"plain": AlbertTextClassifier, "joint": AlbertEarlyExitClassifier}
    for name, cls in classes.items():
        models[name] = build(arguments, cls)
        console.print(f"{name}: fit on {len(x):,} texts")
        models[name].fit(x, y, epochs=arguments.epochs, verbose=2)
    layers = models["plain"].backbone.num_layers

    patiences = {"never": layers, **PATIENCES}
    outputs = {}

    def predict(name):
        if name in patiences:
            outputs[name] = models["joint"].predict_early(
                test_x, patiences[name], arguments.batch_size
            )
        else:
            outputs[name] = models[name].predict(
                test_x, arguments.batch_size, verbose=0
            )

    rate = matrix_rate()
    calls = {name: functools.partial(predict, name) for name in (*models, *patiences)}
    rows = compared(in_turn(calls, arguments.rounds), to="plain")
    for name, row in rows.items():
        row["accuracy"] = float(np.mean(outputs[name].argmax(-1) == test_y))
        row["layers"] = layers
        if name in patiences:
            row["layers"] = mean_layers(models["joint"], test_x, patiences[name])
    control = rows["never"]
    valid = {x: abs(control[x] - 1) < TOLERANCE for x in ("ratio", "cpu_ratio")}
    console.print(f"{layers} layers, {len(test_x):,} test texts")
    columns = ("accuracy", "layers", "ratio", "smallest", "largest", "cpu_ratio")
    console.print(table_of(rows, columns))
    if not valid["ratio"]:
        console.print(
            "The machine is not quiet: a patience that no text meets reads "
            f"{control['ratio']:.2f}, by processor time {control['cpu_ratio']:.2f}. "
            "Do not use `ratio`."
        )
    settings = {**vars(arguments), "layers": layers, "test": len(test_x)}
    for name in ("data", "checkpoint"):
        settings[name] = pathlib.Path(settings[name]).name
    name = f"early_exit_{layers}_layers"
    write_results(
        name,
        {"settings": settings, "valid": valid, "matrix_gflops": rate, "rows": rows},
    )
    speed = "ratio" if valid["ratio"] else "cpu_ratio"
    draw(rows, speed, RESULTS / f"{name}.png")


if __name__ == "__main__":
    main()
