"""Weights and decision thresholds of classes, and the temperature of their scores."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from albert_tf.evaluation.calibration import (
    MIN_EXAMPLES,
    USUAL,
    best_temperature,
    likeliest_temperature,
    usual_temperature,
)
from albert_tf.evaluation.scores import best_thresholds
from albert_tf.models.albert_multi_label_classifier import (
    DEFAULT_THRESHOLD,
    AlbertMultiLabelClassifier,
)
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.albert_token_classifier import AlbertTokenClassifier
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


def tune_temperature(
    model: AlbertTextClassifier | AlbertTokenClassifier,
    x: Iterable[str] | tuple[Iterable[str], Iterable[str]],
    y: Iterable[Any],
    batch_size: int | None = None,
    training_loss: float | None = None,
) -> None:
    """Set the temperature of a model, so that its scores are true to new texts.

    Labels do not change: the thresholds of a multi-label classifier are moved with the
    temperature. It is that of the lowest log loss; with less than some 300 texts it is
    drawn towards what similar models needed, and with less than 20 it is 1.0, with a
    warning.

    Args:
        model: a text, multi-label or token classifier that returns logits.
        x: list of texts that it was not trained on, or for pairs the tuple of two such
            lists.
        y: list of their labels, or of their spans, as for `fit`.
        batch_size: optional int. Examples per batch.
        training_loss: optional float, the loss of the last epoch of `fit`. Similar
            models of one class per text are those with this loss.

    Raises:
        AlbertError: if the model is of another class or has an `activation`, or `y` has
            other labels.

    Example:
    ```python
    history = classifier.fit(texts[:400], labels[:400]).history
    albert_tf.tools.tune_temperature(
        classifier, texts[400:], labels[400:], training_loss=history["loss"][-1]
    )
    classifier.answers(["还不错"])  # [{"label": "好评", "score": 0.83}]
    ```

    Reference:
        [Guo et al., 2017](https://arxiv.org/abs/1706.04599).
    """
    has_temperature = isinstance(model, (AlbertTextClassifier, AlbertTokenClassifier))
    if not has_temperature or model.outputs_are != "logits":
        raise AlbertError(
            "Only a text, multi-label or token classifier that returns logits, without "
            f"`activation`, has a temperature. Received: {type(model).__name__}"
        )
    examples = model.read_examples(x, y)
    count = examples.count
    if not examples.are_texts or count is None:
        raise AlbertError("`x` must be a list of texts, and `y` their labels or spans.")
    temperature = 1.0
    if count < MIN_EXAMPLES:
        warnings.warn(
            f"{count} examples are too few to fit a temperature: the scores "
            f"are not calibrated. Pass {MIN_EXAMPLES} examples or more.",
            stacklevel=2,
        )
    else:
        usual = _usual_temperature(model, training_loss)
        temperature = _fitted_temperature(model, examples, batch_size, usual)
    _set_temperature(model, temperature)


def _usual_temperature(model, training_loss):
    """Return the temperature of similar models, 1.5 where the loss does not tell."""
    has_one_class = isinstance(model, AlbertTextClassifier) and not isinstance(
        model, AlbertMultiLabelClassifier
    )
    if training_loss is None or not has_one_class:
        return USUAL
    return usual_temperature(training_loss)


def _fitted_temperature(model, examples, batch_size, usual):
    """Return the likeliest temperature of a model."""
    if isinstance(model, AlbertTokenClassifier):
        loss = _loss_of_entities(model, examples, batch_size)
        return likeliest_temperature(loss, usual)
    logits = model.predict(examples, batch_size, verbose=0)
    if isinstance(model, AlbertMultiLabelClassifier):
        truth = model.targets(examples.x, examples.y)
    else:
        truth = class_ids(examples.x, examples.y, model.num_classes, model.labels)
    return best_temperature(logits, truth, usual)


def _loss_of_entities(model, examples, batch_size):
    """Return the log loss of the scores of entities as a function of the temperature.

    The tags of tokens are surer than the entities that they make.
    """
    rows = model.predict_rows(examples, batch_size, verbose=0)
    # Raises if a span is not of the model.
    model.targets(examples.x, examples.y, rows.packed)
    truth = [{tuple(span) for span in spans} for spans in examples.y]

    def loss(temperature):
        right, wrong = [], []
        found = model.spans_of_rows(rows, temperature)
        for spans, true_spans in zip(found, truth, strict=True):
            for *span, score in spans:
                (right if tuple(span) in true_spans else wrong).append(score)
        probabilities = np.array([*right, *(1 - score for score in wrong)])
        return -np.log(np.maximum(probabilities, 1e-7)).sum()

    return loss


def _set_temperature(model, temperature):
    """Set the temperature, and move thresholds so that labels stay."""
    ratio = model.temperature / temperature
    model.temperature = temperature
    if thresholds := getattr(model, "thresholds", None):
        p = np.clip(thresholds, 1e-12, 1 - 1e-12)
        logits = np.log(p) - np.log1p(-p)
        model.thresholds = (1 / (1 + np.exp(-logits * ratio))).tolist()
