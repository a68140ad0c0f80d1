"""Scores of texts with any number of classes each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.evaluation.extra import import_extra


def multi_label_scores(truth: Any, chosen: Any) -> dict[str, float]:
    """`micro_f1`, `macro_f1` and `exact_match` of arrays of 0 and 1.

    Args:
        truth, chosen: arrays [examples, classes], the true and the predicted classes.
    """
    metrics = import_extra("sklearn.metrics")
    f1 = {
        f"{average}_f1": float(
            metrics.f1_score(truth, chosen, average=average, zero_division=0)
        )
        for average in ("micro", "macro")
    }
    return {**f1, "exact_match": float(metrics.accuracy_score(truth, chosen))}


def multi_label_report(
    truth: Any, chosen: Any, labels: Sequence[str], as_text: bool = False
) -> Any:
    """Precision, recall and F1 by class, as scikit-learn's `classification_report`.

    Args:
        truth, chosen: arrays of 0 and 1 [examples, classes].
        labels: the names of the classes.
        as_text: bool. A table as a string, instead of a dict.
    """
    return import_extra("sklearn.metrics").classification_report(
        truth,
        chosen,
        target_names=labels,
        zero_division=0,
        digits=4,
        output_dict=not as_text,
    )


def best_thresholds(truth: Any, probabilities: Any, default: float = 0.5) -> list:
    """The threshold of each class at which its F1 is best.

    Args:
        truth: array of 0 and 1 [examples, classes].
        probabilities: float array [examples, classes].
        default: float, of a class that no example has.

    Returns:
        A list of floats. Each lies in the middle between the lowest probability that
        it takes in and the highest that it leaves out.
    """
    curve = import_extra("sklearn.metrics").precision_recall_curve
    truth, probabilities = np.asarray(truth), np.asarray(probabilities, "float64")

    def best(column, values):
        if not column.any():
            return default
        precision, recall, thresholds = curve(column, values)
        # The last point of the curve belongs to no threshold.
        sums = np.maximum(precision + recall, 1e-12)
        best = np.argmax((2 * precision * recall / sums)[:-1])
        below = values[values < thresholds[best]]
        return float((thresholds[best] + below.max(initial=0.0)) / 2)

    return [best(*columns) for columns in zip(truth.T, probabilities.T, strict=True)]
