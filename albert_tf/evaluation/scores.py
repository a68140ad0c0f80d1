"""Scores of each task, by scikit-learn, SciPy and rouge-score."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import (
    as_label,
    as_list,
    class_positions,
    complete,
    whole_numbers,
)

# A report has the matrix of at most so many classes, and so many pairs of classes.
MATRIX_CLASSES, MOST_PAIRS = 50, 50

# (start, end, label) in characters.
Span = tuple[int, int, str]


def check_counts(**columns: Any) -> list[list]:
    """Return columns of examples as lists; raise if one is empty or shorter."""
    lists = {name: as_list(values, name) for name, values in columns.items()}
    counts = {name: len(values) for name, values in lists.items()}
    if len({0, *counts.values()}) != 2:
        raise AlbertError(f"Expected equally many examples, at least 1, not {counts}.")
    return [complete(values, name) for name, values in lists.items()]


def _labels(values):
    """Return labels, or rows of 0 and 1, as an array."""
    return np.asarray([as_label(x) if np.ndim(x) == 0 else x for x in values])


# === Classes ===


def classification_scores(truth: Any, predicted: Any) -> dict[str, float]:
    """Compute `accuracy`, `macro_f1` and `micro_f1` of classes, as ids or names.

    Classes that are neither true nor predicted do not count in `macro_f1`.
    """
    metrics = import_extra("sklearn.metrics")
    columns = check_counts(truth=truth, predicted=predicted)
    truth, predicted = map(_labels, columns)
    if (truth.dtype.kind == "U") != (predicted.dtype.kind == "U"):
        raise AlbertError(
            "`truth` and `predicted` should both be names, or both ids. Received: "
            f"{truth[:3].tolist()} and {predicted[:3].tolist()}"
        )
    scores = {"accuracy": float(metrics.accuracy_score(truth, predicted))}
    for average in ("macro", "micro"):
        f1 = metrics.f1_score(truth, predicted, average=average, zero_division=0)
        scores[f"{average}_f1"] = float(f1)
    return scores


def multi_label_scores(truth: Any, chosen: Any) -> dict[str, float]:
    """Compute `macro_f1`, `micro_f1` and `exact_match` of arrays of 0 and 1.

    Args:
        truth, chosen: arrays [examples, classes], the true and the predicted classes.
    """
    scores = classification_scores(truth, chosen)
    scores["exact_match"] = scores.pop("accuracy")
    return scores


def classification_report(
    truth: Any, predicted: Any, labels: Sequence[str]
) -> dict[str, Any]:
    """Compute precision, recall and F1 by class with scikit-learn.

    Args:
        truth, predicted: values, names or positions of `labels` [examples], as for
            `fit`, or arrays of 0 and 1 [examples, classes] if a text may have several
            classes.
        labels: list of all classes.

    Returns:
        A dict. For one class per text, it also has `confused_pairs`, the most frequent
        ones of a true and another predicted class: dicts of `truth`, `predicted`, their
        `count`, and the `support` of the true class. For at most `MATRIX_CLASSES`
        labels it has the `confusion_matrix`, too, as lists of ints: one row per true
        class, one column per predicted class.
    """
    metrics = import_extra("sklearn.metrics")
    truth, predicted = check_counts(truth=truth, predicted=predicted)
    labels, ids = as_list(labels, "labels"), range(len(labels))
    if np.ndim(truth[0]):
        truth, predicted = np.asarray(truth), np.asarray(predicted)
    else:
        truth = class_positions(truth, labels, "truth")
        predicted = class_positions(predicted, labels, "predicted")
    report = metrics.classification_report(
        truth,
        predicted,
        labels=ids,
        target_names=list(map(str, labels)),
        zero_division=0,
        output_dict=True,
    )
    for row in report.values():
        if isinstance(row, dict):
            row["support"] = int(row["support"])
    if np.ndim(truth) == 1:
        report["confused_pairs"] = _confused_pairs(truth, predicted, labels)
        if len(labels) <= MATRIX_CLASSES:
            matrix = metrics.confusion_matrix(truth, predicted, labels=ids)
            report["confusion_matrix"] = matrix.tolist()
    return report


def _confused_pairs(truth, predicted, labels):
    """Return the most frequent pairs of classes, int arrays [examples], that differ."""
    support = np.bincount(truth, minlength=len(labels))
    wrong = np.stack([truth, predicted], axis=1)[truth != predicted]
    pairs, counts = np.unique(wrong, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_PAIRS]
    return [
        {
            "truth": str(labels[pairs[i, 0]]),
            "predicted": str(labels[pairs[i, 1]]),
            "count": int(counts[i]),
            "support": int(support[pairs[i, 0]]),
        }
        for i in order
    ]


def best_thresholds(truth: Any, probabilities: Any, default: float = 0.5) -> list:
    """Return the threshold of each class that has the best F1, `default` if absent.

    `truth` is 0 or 1, `probabilities` a float, both [examples, classes]. A threshold is
    in the middle between two probabilities.
    """
    curve = import_extra("sklearn.metrics").precision_recall_curve
    truth, probabilities = np.asarray(truth), np.asarray(probabilities, "float64")

    def best(column, values):
        if not column.any():
            return default
        precision, recall, thresholds = curve(column, values)
        # The last point of the curve has no threshold.
        sums = np.maximum(precision + recall, 1e-12)
        best = np.argmax((2 * precision * recall / sums)[:-1])
        below = values[values < thresholds[best]]
        return float((thresholds[best] + below.max(initial=0.0)) / 2)

    return [best(*columns) for columns in zip(truth.T, probabilities.T, strict=True)]


def worst_mistakes(
    probabilities: Any, truth: Any, count: int = 50
) -> list[dict[str, Any]]:
    """Return the wrongly classified examples, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth: int array [examples], the true classes.
        count: int, the maximum number of examples.

    Returns:
        A list of dicts, sorted by the probability of the true class: `index` of the
        example, `label_id` and `predicted_id`, and the probability of each,
        `label_probability` and `predicted_probability`.

    Raises:
        AlbertError: if the probabilities of an example do not sum to 1.

    Example:

    >>> worst_mistakes([[0.9, 0.1], [0.7, 0.3]], [0, 1])[0]["index"]
    1
    """
    probabilities = np.asarray(probabilities, "float64")
    truth = whole_numbers(truth, "truth")
    # Sums of bfloat16 are off by about 1 %.
    if not np.allclose(probabilities.sum(axis=-1), 1, atol=0.05):
        raise AlbertError(
            "The `probabilities` of each example should sum to 1. For the logits of a "
            'classifier, pass `answers(outputs)["probabilities"]`.'
        )
    given = probabilities[np.arange(len(truth)), truth]
    predicted = probabilities.argmax(axis=1)
    order = np.argsort(given, kind="stable")
    return [
        {
            "index": int(i),
            "label_id": int(truth[i]),
            "predicted_id": int(predicted[i]),
            "label_probability": float(given[i]),
            "predicted_probability": float(probabilities[i, predicted[i]]),
        }
        for i in order[predicted[order] != truth[order]][:count]
    ]


# === Numbers ===


def regression_scores(truth: Any, predicted: Any) -> dict[str, float]:
    """Compute `pearson`, `spearman` and `mse`, the scores of STS-B.

    The correlation with a constant is 0.

    Args:
        truth, predicted: float arrays [examples].

    Example:
    ```python
    regression_scores([0.0, 2.5, 5.0], regressor.predict((first, second)))
    ```
    """
    stats = import_extra("scipy.stats")
    columns = check_counts(truth=truth, predicted=predicted)
    truth, predicted = (np.ravel(x).astype("float64") for x in columns)
    constant = np.ptp(truth) == 0 or np.ptp(predicted) == 0
    return {
        "pearson": 0.0 if constant else float(stats.pearsonr(truth, predicted)[0]),
        "spearman": 0.0 if constant else float(stats.spearmanr(truth, predicted)[0]),
        "mse": float(np.mean((truth - predicted) ** 2)),
    }


# === Entities ===


def entity_scores(
    truth: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]]
) -> dict[str, Any]:
    """Compute precision, recall and F1 of entities as CoNLL-2003 does.

    An entity is right if its start, end and label are right.

    Args:
        truth, predicted: a list of (start, end, label) for each text. Entities of a
            text must not overlap.

    Returns:
        A dict: `precision`, `recall`, `f1` (floats, over the entities of all types),
        `count` (int, true entities), and `types`, a dict by label of dicts with
        the same four.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if the numbers of texts differ or are 0.

    Example:
    ```python
    entity_scores(spans, tagger.predict(texts))["f1"]
    ```

    Reference:
        [CoNLL-2003](https://aclanthology.org/W03-0419), section 3.
    """
    metrics = import_extra("sklearn.metrics")
    truth, predicted = check_counts(truth=truth, predicted=predicted)
    true, found = (
        {(i, *place): label for i, row in enumerate(rows) for *place, label in row}
        for rows in (truth, predicted)
    )
    # The label of each place where an entity is or was found; "" where there is none.
    places = true.keys() | found.keys()
    labels = sorted({*true.values(), *found.values()})
    pair = [[row.get(place, "") for place in places] for row in (true, found)]

    if not labels:
        return {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 0, "types": {}}

    def scores(average):
        *columns, _ = metrics.precision_recall_fscore_support(
            *pair, labels=labels, average=average, zero_division=0
        )
        return columns

    counts = Counter(true.values())
    types = {
        label: {**_named_scores(row), "count": counts[label]}
        for label, *row in zip(labels, *scores(None), strict=True)
    }
    total = {**_named_scores(scores("micro")), "count": len(true)}
    return {**total, "types": types}


def _named_scores(values):
    return dict(zip(("precision", "recall", "f1"), map(float, values), strict=True))
