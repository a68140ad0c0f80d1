"""Weights and decision thresholds of classes."""

from collections.abc import Iterable
from typing import Any

from albert_tf.evaluation.scores import best_thresholds
from albert_tf.models.albert_text_classifier import (
    DEFAULT_THRESHOLD,
    AlbertMultiLabelClassifier,
)
from albert_tf.trainers.class_weights import balanced_weights
from albert_tf.trainers.labels import check_class_names, class_ids
from albert_tf_lite.answers import classify_multi_label
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_list, has_two_readings


def class_weights(
    y: Iterable[Any], labels: Iterable[Any] | None = None
) -> dict[Any, float]:
    """Return weights inversely proportional to how often each class occurs.

    They are those of scikit-learn's `class_weight="balanced"`, as `fit` takes them and
    computes them for `class_weight="balanced"`.

    Args:
        y: list or array of class ids, or of values or names of `labels`.
        labels: optional list, the `labels` of the classifier.

    Returns:
        A dict of floats by class id, or by label if the labels are numbers.

    Raises:
        AlbertError: if `y` is empty, or a name is not among `labels`.

    Example:
    ```python
    weights = albert_tf.tools.class_weights(["好评", "好评", "差评"], ["差评", "好评"])
    # {0: 1.5, 1: 0.75}; pass it as fit(texts, y, class_weight=weights).
    ```
    """
    given = as_list(y, "y")
    names = check_class_names(labels) or []
    ids = class_ids(given, given, len(names) or None, names or None)
    weights = balanced_weights(ids, len(names))
    are_strings = all(isinstance(name, str) for name in names)
    if are_strings and not has_two_readings(names):
        return dict(enumerate(weights))
    return dict(zip(names, weights, strict=True))


def tune_thresholds(
    classifier: AlbertMultiLabelClassifier,
    x: Iterable[str] | tuple[Iterable[str], Iterable[str]],
    y: Iterable[Any],
    batch_size: int | None = None,
) -> None:
    """Set the thresholds of a multi-label classifier to those with the best F1.

    Args:
        classifier: an `AlbertMultiLabelClassifier`.
        x: list of texts that it was not trained on, or for pairs the tuple of two such
            lists.
        y: list of the labels of each text, or an array [texts, classes] of 0 and 1.
        batch_size: optional int. Examples per batch.

    Raises:
        AlbertError: if the classifier is not multi-label, or `y` has other labels.
    """
    if not isinstance(classifier, AlbertMultiLabelClassifier):
        raise AlbertError(
            "Only an AlbertMultiLabelClassifier has thresholds. Received: "
            f"{type(classifier).__name__}"
        )
    examples = classifier.read_examples(x, y)
    truth = classifier.targets(examples.x, examples.y)
    outputs = classifier.predict(examples, batch_size, verbose=0)
    answers = classify_multi_label(outputs, classifier.exported_settings())
    thresholds = best_thresholds(truth, answers["probabilities"], DEFAULT_THRESHOLD)
    classifier.thresholds = thresholds
