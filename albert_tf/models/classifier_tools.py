"""Functions for classifiers: class weights, thresholds, long texts, features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.evaluation.scores import best_thresholds
from albert_tf.models.albert_text_classifier import (
    DEFAULT_THRESHOLD,
    AlbertMultiLabelClassifier,
)
from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.preprocessing.texts import tokenize_with_offsets, warn_of_unknown
from albert_tf.trainers.class_weights import balanced_weights
from albert_tf.trainers.labels import check_class_names, class_ids
from albert_tf.trainers.prediction import predict_batches
from albert_tf_lite.answers import classify_multi_label
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import (
    as_list,
    as_texts,
    check_integer,
    has_two_readings,
)


def class_weights(y: Any, labels: Any = None) -> dict[Any, float]:
    """Return weights inversely proportional to how often each class occurs.

    They are those of scikit-learn's `class_weight="balanced"`, as `fit` takes them and
    computes them for `class_weight="balanced"`.

    Args:
        y: list or array of class ids, or of values or names of `labels`.
        labels: optional list, as of the classifier.

    Returns:
        A dict of floats by class id, or by label if the labels are numbers.

    Raises:
        AlbertError: if `y` is empty, or a name is not among `labels`.

    Example:
    ```python
    weights = albert_tf.models.class_weights(["好评", "好评", "差评"], ["差评", "好评"])
    # {0: 1.5, 1: 0.75}; pass it as fit(texts, y, class_weight=weights).
    ```
    """
    y, labels = as_list(y, "y"), check_class_names(labels)
    ids = class_ids(y, y, len(labels) if labels else None, labels)
    weights = balanced_weights(ids, len(labels or ()))
    by_label = labels and not all(isinstance(x, str) for x in labels)
    keys = labels if by_label or has_two_readings(labels or ()) else range(len(weights))
    return dict(zip(keys, weights, strict=True))


def tune_thresholds(
    classifier: AlbertMultiLabelClassifier,
    x: Any,
    y: Any,
    batch_size: int | None = None,
) -> None:
    """Set the thresholds of a multi-label classifier to those with the best F1.

    Args:
        classifier: an `AlbertMultiLabelClassifier`.
        x, y: labelled texts that it was not trained on, as for `fit`.
        batch_size: optional int.

    Raises:
        AlbertError: if the classifier is not multi-label, or `y` not as for `fit`.
    """
    if not isinstance(classifier, AlbertMultiLabelClassifier):
        raise AlbertError(
            "Only an AlbertMultiLabelClassifier has thresholds. Received: "
            f"{type(classifier).__name__}"
        )
    examples = classifier.read_examples(x, y)
    truth = classifier.targets(examples.x, examples.y)
    outputs = classifier.predict(examples, batch_size, verbose=0)
    found = classify_multi_label(outputs, classifier.exported_settings())
    classifier.thresholds = best_thresholds(
        truth, found["probabilities"], DEFAULT_THRESHOLD
    )


def predict_windows(
    task: Any,
    texts: Sequence[str],
    combine: str = "mean",
    stride: int | None = None,
    batch_size: int | None = None,
    verbose: str | int = "auto",
) -> np.ndarray:
    """Predict long texts completely, from overlapping windows.

    Args:
        task: an `AlbertTextClassifier`, `AlbertMultiLabelClassifier` or
            `AlbertTextRegressor`.
        texts: list of strings, at least one.
        combine: `"mean"` or `"max"` of the outputs of a text's windows, each output by
            itself.
        stride: optional int, the tokens from the start of one window to that of the
            next. By default half a window, so that a phrase at the edge of one window
            is inside another.
        batch_size: optional int.
        verbose: as for `keras.Model.predict`.

    Returns:
        An array [texts, ...], as of `task.predict`.

    Raises:
        AlbertError: if `texts` is empty or pairs, or an argument is wrong.

    Example:
    ```python
    outputs = albert_tf.models.predict_windows(classifier, long_texts)
    ```
    """
    if combine not in ("mean", "max"):
        raise AlbertError(f'`combine` must be "mean" or "max". Received: {combine!r}')
    if not isinstance(texts, (str, tuple, tf.data.Dataset)):
        texts = as_texts(texts)
    if not isinstance(texts, list) or not texts:
        raise AlbertError(
            "`texts` must be a list of single texts, at least one. Received: "
            f"{type(texts).__name__}"
        )
    packer = task.preprocessor.packer
    size = packer.sequence_length - 2
    if stride is None:
        stride = max(size // 2, 1)
    # A longer stride would leave out tokens between windows.
    stride = check_integer("stride", stride, 1, size)
    tokens = tokenize_with_offsets(task.preprocessor.tokenizer, texts)
    warn_of_unknown(tokens[0].values, texts, task.preprocessor.tokenizer)
    packed = WindowedTexts.of(packer, *tokens, size, stride)
    batches = task.prediction_batches(packed, batch_size)
    outputs = predict_batches(task, batches, verbose=verbose)
    outputs = task.predictions(texts, packed, outputs)
    counts = np.bincount(packed.windows.texts)
    starts = np.cumsum(counts) - counts
    if combine == "max":
        return np.maximum.reduceat(outputs, starts)
    sums = np.add.reduceat(outputs, starts)
    return (sums.T / counts).T.astype(outputs.dtype)
