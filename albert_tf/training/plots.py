"""Plot the curves of a training."""

import numpy as np

from albert_tf.files import complete_file


def draw(history, titles, path, interval=1, xlabel="epoch"):
    """Plot metrics of training and dev, one panel per metric, as a PNG file.

    `history` is Keras' `History.history` with `None` for an epoch without a metric.
    `titles` has the title of each metric, `interval` the length of an epoch on the
    x-axis.
    """
    # pyplot would change the caller's backend.
    from matplotlib.figure import Figure

    metrics = [x for x in titles if x in history or f"val_{x}" in history]
    figure = Figure(figsize=(4.5 * len(metrics), 3.5), layout="constrained")
    axes = figure.subplots(1, len(metrics), squeeze=False)
    for axis, metric in zip(axes[0], metrics, strict=True):
        for name, label in ((metric, "training"), (f"val_{metric}", "dev")):
            values = np.array(history.get(name, []), float)
            if len(values):
                x = interval * np.arange(1, len(values) + 1)
                # Markers show a single point.
                axis.plot(x, values, marker="o", markersize=4, label=label)
        axis.set(xlabel=xlabel, title=titles[metric])
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        axis.legend()
    with complete_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
