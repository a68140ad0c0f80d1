"""Measure accuracy against speed of early exit on ChnSentiCorp.

    python benchmarks/early_exit.py /path/of/chnsenticorp_clean.zip [--layers 12]

Fine-tunes a plain classifier and one with early exit from the same weights, and
predicts the test texts with every setting in turn. Times are measured from strings to
outputs. The speed is relative to the plain model in the same round.

`never` is a control: no text can meet its condition, so every text passes all layers
and its ratio should be 1. When other processes disturb the measurement, the ratio
differs and the script prints a warning. `layers`, the mean number of layers per text,
does not depend on a clock, and `cpu_ratio`, based on processor time, is hardly affected
by other processes.
"""

import argparse
import json
import pathlib

import keras
import matplotlib
import numpy as np
from harness import (
    RESULTS,
    compared,
    console,
    in_turn,
    matrix_rate,
    read_reviews,
    table_of,
    write_results,
)

from albert_tf.models import AlbertTextClassifier, ConfidenceWindow, Patience

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

MICRO = pathlib.Path(__file__).parents[1] / "examples" / "albert_micro_zh"
# Maximum deviation of the control's ratio from 1.
TOLERANCE = 0.05
RULES = {
    **{f"patience {n}": Patience(n) for n in (1, 2, 3, 4, 6)},
    **{f"entropy {x}": ConfidenceWindow(x, None) for x in (0.05, 0.1, 0.2, 0.4, 0.6)},
    **{f"window 4, {x}": ConfidenceWindow(x, 4) for x in (0.05, 0.1, 0.2, 0.4)},
}


def build(arguments, early_exit):
    """Build a classifier with the requested number of (shared) layers."""
    folder = pathlib.Path(arguments.checkpoint)
    config = json.loads(next(folder.glob("*config*.json")).read_text("utf-8"))
    if arguments.layers:
        config["num_hidden_layers"] = arguments.layers
    keras.utils.set_random_seed(arguments.seed)
    return AlbertTextClassifier.from_checkpoint(
        folder,
        config=config,
        num_classes=2,
        sequence_length=arguments.sequence_length,
        early_exit=early_exit,
    )


def mean_layers(model, x, rule):
    """Return the mean number of layers per text, computed from all hidden states."""
    last, counts = model.backbone.num_layers, []
    network = model.backbone.with_intermediates()
    for start in range(0, len(x), 64):
        features = model.preprocessor(x[start : start + 64])
        mask = features["padding_mask"]
        states = network(features)["hidden_states"][1:]
        left = np.full(len(mask), last)
        memory = np.tile(np.float32([rule.beginning]), (len(mask), 1))
        for number, state in enumerate(states[:-1], start=1):
            logits = model.class_logits(model._classify(state, mask))
            done, memory = rule.step(keras.ops.softmax(logits), memory)
            left = np.where(np.array(done), np.minimum(left, number), left)
        counts.extend(left)
    return float(np.mean(counts))


def draw(rows, speed, path):
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for kind in ("plain", "joint", "patience", "entropy", "window"):
        points = [
            (row[speed], row["accuracy"])
            for name, row in rows.items()
            if name.startswith(kind)
        ]
        marker = {"plain": "*", "joint": "P"}.get(kind, "o-")
        axes.plot(*zip(*sorted(points), strict=True), marker, label=kind)
    clock = {"ratio": "", "cpu_ratio": ", by processor time"}[speed]
    axes.set_xlabel(f"times as fast as the plain model{clock}")
    axes.set_ylabel("accuracy")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="chnsenticorp_clean.zip")
    parser.add_argument("--checkpoint", default=str(MICRO))
    parser.add_argument("--layers", type=int, help="default: as in the checkpoint")
    parser.add_argument("--train", type=int, help="training examples (default: all)")
    parser.add_argument("--test", type=int, help="test examples (default: all)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    x, y = read_reviews(arguments.data, "train.tsv", arguments.train)
    test_x, test_y = read_reviews(arguments.data, "test.tsv", arguments.test)
    models = {}
    for name, early_exit in (("plain", False), ("joint", True)):
        models[name] = build(arguments, early_exit)
        console.print(f"{name}: fit on {len(x):,} texts")
        models[name].fit(x, y, epochs=arguments.epochs, verbose=2)
    layers = models["plain"].backbone.num_layers

    jobs = {"plain": (models["plain"], None), "joint": (models["joint"], None)}
    rules = {"never": Patience(layers), **RULES}
    jobs.update({name: (models["joint"], rule) for name, rule in rules.items()})
    outputs = {}

    def job(name):
        model, rule = jobs[name]
        options = {"batch_size": arguments.batch_size, "verbose": 0}
        outputs[name] = model.predict(test_x, early_exit=rule, **options)

    rate = matrix_rate()
    calls = {name: lambda name=name: job(name) for name in jobs}
    rows = compared(in_turn(calls, arguments.rounds), to="plain")
    for name, row in rows.items():
        row["accuracy"] = float(np.mean(outputs[name].argmax(-1) == test_y))
        rule = jobs[name][1]
        row["layers"] = mean_layers(models["joint"], test_x, rule) if rule else layers
    control = rows["never"]
    valid = {x: abs(control[x] - 1) < TOLERANCE for x in ("ratio", "cpu_ratio")}
    console.print(f"{layers} layers, {len(test_x):,} test texts")
    columns = ("accuracy", "layers", "ratio", "smallest", "largest", "cpu_ratio")
    console.print(table_of(rows, columns))
    if not valid["ratio"]:
        console.print(
            f"The control's ratio is {control['ratio']:.2f} instead of 1 "
            f"({control['cpu_ratio']:.2f} by processor time): other processes are "
            "running. Do not use `ratio`."
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
