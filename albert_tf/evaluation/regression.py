"""Scores of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from albert_tf.evaluation.extra import import_extra


def regression_scores(truth: Any, predicted: Any) -> dict[str, float]:
    """`pearson`, `spearman` and `mse`, as STS-B is scored.

    A correlation with what is the same everywhere is 0.

    Args:
        truth, predicted: float arrays [examples].

    Example:
    ```python
    regression_scores([0.0, 2.5, 5.0], regressor.predict((first, second)))
    ```
    """
    stats = import_extra("scipy.stats")
    truth, predicted = (np.ravel(x).astype("float64") for x in (truth, predicted))
    constant = np.ptp(truth) == 0 or np.ptp(predicted) == 0
    return {
        "pearson": 0.0 if constant else float(stats.pearsonr(truth, predicted)[0]),
        "spearman": 0.0 if constant else float(stats.spearmanr(truth, predicted)[0]),
        "mse": float(np.mean((truth - predicted) ** 2)),
    }
