"""The plots of pages, from the results of the benchmarks: `make figures`.

Each value of `PLOTS` is a function that returns what a plot shows, and one that draws
it. Its argument is the results by the name of their file. A file of a plot keeps what
it shows, so that a stale one is found without drawing it again.
"""

import json
import statistics

from matplotlib.figure import Figure
from PIL import Image

from benchmarks.pages.accuracy_tables import OURS, best_baseline, scores
from benchmarks.pages.computed import read_known_models

# Data set in `results/`, and the name of the baseline in `one_core.json`.
DATA, BASELINE = "ChnSentiCorp", "TF-IDF"
MEASURED, TEST, DEV = "measured here, test", "published, test", "published, dev"
# Color, marker and its filling, and the place of the names.
STYLES = {
    MEASURED: ("C3", "o", "C3", {"xytext": (0, 7), "ha": "center"}),
    TEST: ("C0", "s", "C0", {"xytext": (7, 3)}),
    DEV: ("C0", "s", "none", {"xytext": (-4, -12), "ha": "right"}),
}
# Names with another place, where they would touch a neighbour's.
PLACES = {"RoBERTa-Small": {"xytext": (7, -10), "ha": "left"}}


def known_models(results):
    """Return names, milliseconds, accuracies in percent, and kinds."""
    times = results["one_core"]["rows"]
    best, _ = best_baseline(results, DATA, "all")
    models = [[BASELINE, times[BASELINE]["ms"], 100 * best, MEASURED]]
    for size, title in (("0", "no labels"), ("all", "fine-tuned")):
        if values := scores(results, DATA, size):
            accuracy = 100 * statistics.mean(values)
            name = f"albert-tf, {title}"
            models.append([name, times[OURS]["ms"], accuracy, MEASURED])
    for name, model in read_known_models()["models"].items():
        kind = {"test": TEST, "dev": DEV}[model["split"]]
        models.append([name, times[name]["ms"], model["accuracy"], kind])
    return models


def draw_known_models(shown):
    """Return a plot of accuracy against the milliseconds of one core."""
    figure = Figure(figsize=(8, 5), layout="tight")
    axes = figure.add_subplot()
    for kind, (color, marker, face, place) in STYLES.items():
        points = [(name, ms, accuracy) for name, ms, accuracy, x in shown if x == kind]
        axes.scatter(
            [ms for _, ms, _ in points],
            [accuracy for _, _, accuracy in points],
            label=kind,
            edgecolors=color,
            facecolors=face,
            marker=marker,
        )
        style = {"fontsize": 8, "color": color, "textcoords": "offset points"}
        for name, ms, accuracy in points:
            position = PLACES.get(name, place)
            axes.annotate(name, (ms, accuracy), **style, **position)
    axes.set_xscale("log")
    axes.set_xlim(0.5, 1000)
    axes.margins(y=0.1)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("milliseconds for a text of 100 tokens on one core")
    axes.set_ylabel(f"accuracy on {DATA}, %")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    return figure


def is_drawn(path, shown):
    """Return whether the file of a plot shows this."""
    if not path.exists():
        return False
    with Image.open(path) as image:
        return image.info.get("Description") == json.dumps(shown)


def save(figure, path, shown):
    figure.savefig(path, dpi=120, metadata={"Description": json.dumps(shown)})


# By the file of the plot.
PLOTS = {
    "benchmarks/results/accuracy.png": (known_models, draw_known_models),
}
