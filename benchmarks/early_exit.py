"""Accuracy against time of texts that leave the encoder early, on ChnSentiCorp.

    python benchmarks/early_exit.py /path/of/chnsenticorp_clean.zip [--layers 12]

Fine-tunes two classifiers from the same weights, with `early_exit=True` and without,
and predicts the test texts by every rule in turn. The time is that from strings to
outputs; the speed, times that of the plain model in the same round.
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
RULES = {
    **{f"patience {n}": Patience(n) for n in (1, 2, 3, 4, 6)},
    **{f"entropy {x}": ConfidenceWindow(x, None) for x in (0.05, 0.1, 0.2, 0.4, 0.6)},
    **{f"window 4, {x}": ConfidenceWindow(x, 4) for x in (0.05, 0.1, 0.2, 0.4)},
}


def build(arguments, early_exit):
    """A classifier whose block runs as often as asked: all layers are one."""
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


def draw(rows, path):
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for kind in ("plain", "joint", "patience", "entropy", "window"):
        points = [
            (row["ratio"], row["accuracy"])
            for name, row in rows.items()
            if name.startswith(kind)
        ]
        marker = {"plain": "*", "joint": "P"}.get(kind, "o-")
        axes.plot(*zip(*sorted(points), strict=True), marker, label=kind)
    axes.set_xlabel("times as fast as the plain model")
    axes.set_ylabel("accuracy")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
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
    jobs.update({name: (models["joint"], rule) for name, rule in RULES.items()})
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
    console.print(f"{layers} layers, {len(test_x):,} test texts")
    console.print(table_of(rows, ("accuracy", "ratio", "smallest", "largest")))
    settings = {**vars(arguments), "layers": layers, "test": len(test_x)}
    for name in ("data", "checkpoint"):
        settings[name] = pathlib.Path(settings[name]).name
    name = f"early_exit_{layers}_layers"
    write_results(name, {"settings": settings, "matrix_gflops": rate, "rows": rows})
    draw(rows, RESULTS / f"{name}.png")


if __name__ == "__main__":
    main()
