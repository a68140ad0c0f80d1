"""Scores of texts with one class each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from albert_tf.evaluation.extra import import_extra

# Between the levels of a label such as "体育/足球".
LEVEL_SEPARATOR = "/"


def classification_scores(truth: Sequence, predicted: Sequence) -> dict[str, float]:
    """`accuracy`, `macro_f1` and `micro_f1` of classes, given as ids or names.

    A class that is neither true nor predicted anywhere does not count in `macro_f1`.
    """
    metrics = import_extra("sklearn.metrics")
    f1 = {
        f"{average}_f1": float(
            metrics.f1_score(truth, predicted, average=average, zero_division=0)
        )
        for average in ("macro", "micro")
    }
    return {"accuracy": float(metrics.accuracy_score(truth, predicted)), **f1}


def classification_report(
    truth: Sequence[int],
    predicted: Sequence[int],
    labels: Sequence[str],
    as_text: bool = False,
) -> Any:
    """Precision, recall and F1 by class, as scikit-learn's `classification_report`.

    Args:
        truth, predicted: int arrays [examples], positions in `labels`.
        labels: the names of all classes.
        as_text: bool. A table as a string, instead of a dict.

    Returns:
        A string; or a dict, which has also the `confusion_matrix`, lists of ints: a
        row a true class, a column a predicted one.
    """
    metrics = import_extra("sklearn.metrics")
    ids = range(len(labels))
    report = metrics.classification_report(
        truth,
        predicted,
        labels=ids,
        target_names=labels,
        zero_division=0,
        digits=4,
        output_dict=not as_text,
    )
    if not as_text:
        matrix = metrics.confusion_matrix(truth, predicted, labels=ids)
        report["confusion_matrix"] = matrix.tolist()
    return report


def level_scores(
    truth: Sequence[int], predicted: Sequence[int], labels: Sequence[str]
) -> list[dict[str, float]]:
    """Scores of hierarchical classes, such as "体育/足球", at each of their levels.

    At level 1 only what stands before the first "/" counts, and so on. A label with
    fewer levels is itself below them.

    Args:
        truth, predicted, labels: as for `classification_report`.

    Returns:
        A list of dicts, the first level first: `level` (from 1) and
        `classification_scores`; empty if no label has levels.
    """
    parts = [label.split(LEVEL_SEPARATOR) for label in labels]
    depth = max(map(len, parts), default=0)
    if depth < 2:
        return []
    scores = []
    for level in range(1, depth + 1):
        names = [LEVEL_SEPARATOR.join(part[:level]) for part in parts]
        pair = ([names[i] for i in ids] for ids in (truth, predicted))
        scores.append({"level": level, **classification_scores(*pair)})
    return scores
