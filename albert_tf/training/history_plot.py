"""Plot the history of a training."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.files import complete_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_history(
    history: dict[str, list],
    metrics: Iterable[str],
    path: str | os.PathLike,
    interval: int = 1,
    xlabel: str = "epoch",
    start: dict[str, float] | None = None,
) -> None:
    """Plot metrics of training and dev as a PNG file, with a panel per metric.

    `start` has the scores on dev before training, which are drawn at 0.
    """
    # pyplot would change the caller's backend.
    from matplotlib.figure import Figure

    shown = [x for x in metrics if x in history or f"val_{x}" in history]
    figure = Figure(figsize=(4.5 * len(shown), 3.5), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False)
    for axis, metric in zip(axes[0], shown, strict=True):
        if metric in history:
            _plot_values(axis, history[metric], interval, "training")
        if f"val_{metric}" in history:
            before = start[metric] if start else None
            _plot_values(axis, history[f"val_{metric}"], interval, "dev", before)
        axis.set(xlabel=xlabel, title=metric.replace("_", " "))
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        axis.legend()
    with complete_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")


def _plot_values(
    axis: "Axes",
    values: list,
    interval: int,
    label: str,
    before: float | None = None,
) -> None:
    """Plot the values of each interval, and the one before the first at 0."""
    steps = interval * np.arange(1, len(values) + 1)
    numbers = np.array(values, float)
    if before is not None:
        steps, numbers = np.append(0, steps), np.append(before, numbers)
    # Markers show a single point.
    axis.plot(steps, numbers, marker="o", markersize=4, label=label)
