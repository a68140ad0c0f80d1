"""Scores of each task, by scikit-learn, SciPy and rouge-score."""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import (
    as_label,
    as_list,
    class_positions,
    complete,
    whole_numbers,
)

# The most classes in the confusion matrix of a report, and its most pairs of classes.
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


def _labels(values: list) -> np.ndarray:
    """Return labels, or rows of 0 and 1, as an array."""
    return np.asarray([as_label(x) if np.ndim(x) == 0 else x for x in values])


# === Classes ===


def classification_scores(truth: Iterable, predicted: Iterable) -> dict[str, float]:
    """Compute `accuracy`, `macro_f1` and `micro_f1` of classes, as ids or names.

    Classes that are neither true nor predicted do not count in `macro_f1`.
    """
    metrics = import_extra("sklearn.metrics")
    truth, predicted = check_counts(truth=truth, predicted=predicted)
    truth, predicted = _labels(truth), _labels(predicted)
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


def multi_label_scores(truth: Iterable, chosen: Iterable) -> dict[str, float]:
    """Compute `macro_f1`, `micro_f1` and `exact_match` of arrays of 0 and 1.

    Args:
        truth, chosen: arrays [examples, classes], the true and the predicted classes.
    """
    scores = classification_scores(truth, chosen)
    scores["exact_match"] = scores.pop("accuracy")
    return scores


def classification_report(
    truth: Iterable, predicted: Iterable, labels: Iterable
) -> dict[str, Any]:
    """Compute precision, recall and F1 by class with scikit-learn.

    Args:
        truth, predicted: values, names or positions of `labels` [examples], or arrays
            of 0 and 1 [examples, classes] if a text may have several classes.
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
    labels = as_list(labels, "labels")
    ids = range(len(labels))
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


def _confused_pairs(
    truth: np.ndarray, predicted: np.ndarray, labels: Sequence
) -> list[dict[str, Any]]:
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


def best_thresholds(
    truth: ArrayLike, probabilities: ArrayLike, default: float = 0.5
) -> list[float]:
    """Return the threshold of each class that has the best F1, `default` if absent.

    `truth` is 0 or 1, `probabilities` a float, both [examples, classes]. A threshold is
    in the middle between two probabilities.
    """
    truth = np.asarray(truth)
    probabilities = np.asarray(probabilities, "float64")
    thresholds = []
    for column, values in zip(truth.T, probabilities.T, strict=True):
        is_absent = not column.any()
        thresholds.append(default if is_absent else _best_threshold(column, values))
    return thresholds


def _best_threshold(truth: np.ndarray, values: np.ndarray) -> float:
    """Return the threshold of one class with the best F1."""
    curve = import_extra("sklearn.metrics").precision_recall_curve
    precision, recall, thresholds = curve(truth, values)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    # The last point of the curve has no threshold.
    threshold = thresholds[np.argmax(f1[:-1])]
    below = values[values < threshold].max(initial=0.0)
    return float((threshold + below) / 2)


def worst_mistakes(
    probabilities: ArrayLike, truth: Iterable[int], count: int = 50
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
    of_truth = probabilities[np.arange(len(truth)), truth]
    predicted = probabilities.argmax(axis=1)
    order = np.argsort(of_truth, kind="stable")
    wrong = order[predicted[order] != truth[order]]
    return [
        {
            "index": int(i),
            "label_id": int(truth[i]),
            "predicted_id": int(predicted[i]),
            "label_probability": float(of_truth[i]),
            "predicted_probability": float(probabilities[i, predicted[i]]),
        }
        for i in wrong[:count]
    ]


# === Numbers ===


def regression_scores(truth: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
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
    truth, predicted = check_counts(truth=truth, predicted=predicted)
    truth, predicted = np.ravel(truth), np.ravel(predicted)
    truth, predicted = truth.astype("float64"), predicted.astype("float64")
    pearson = spearman = 0.0
    if np.ptp(truth) and np.ptp(predicted):
        pearson = float(stats.pearsonr(truth, predicted)[0])
        spearman = float(stats.spearmanr(truth, predicted)[0])
    mse = float(np.mean((truth - predicted) ** 2))
    return {"pearson": pearson, "spearman": spearman, "mse": mse}


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
    true_labels, predicted_labels = _by_place(truth), _by_place(predicted)
    labels = sorted({*true_labels.values(), *predicted_labels.values()})
    if not labels:
        return {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 0, "types": {}}
    # The label of each place where an entity is or was found; "" where there is none.
    places = true_labels.keys() | predicted_labels.keys()
    columns = (
        [true_labels.get(place, "") for place in places],
        [predicted_labels.get(place, "") for place in places],
    )
    score = functools.partial(metrics.precision_recall_fscore_support, zero_division=0)
    precision, recall, f1, _ = score(*columns, labels=labels, average="micro")
    by_type = score(*columns, labels=labels, average=None)
    counts = Counter(true_labels.values())
    types = {}
    for i, label in enumerate(labels):
        types[label] = {
            "precision": float(by_type[0][i]),
            "recall": float(by_type[1][i]),
            "f1": float(by_type[2][i]),
            "count": counts[label],
        }
    return {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "count": len(true_labels),
        "types": types,
    }


class _Place(NamedTuple):
    """The place of an entity."""

    text: int  # The number of the text.
    start: int
    end: int


def _by_place(texts: Sequence[Sequence[Span]]) -> dict[_Place, str]:
    """Return the label of each entity by its place."""
    return {
        _Place(number, start, end): label
        for number, spans in enumerate(texts)
        for start, end, label in spans
    }
