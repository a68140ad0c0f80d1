"""Lists and datasets of strings: what `fit`, `evaluate` and `predict` do with them."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import (
    LABELS,
    OTHERS,
    TEXTS,
    cross_entropy,
    predict,
    small_classifier,
    unequal_batches,
)

from albert_tf.models import bucket_by_length

WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 0.25, 1.5])
PAIRS = (TEXTS, OTHERS)


@pytest.fixture(scope="module")
def frozen():
    """Classifier with a learning rate of 0, so that losses of a fit can be computed."""
    classifier = small_classifier(sizes={"num_layers": 1}, dropout=0.0)
    classifier.compile(optimizer=keras.optimizers.SGD(0.0))
    return classifier


@pytest.fixture(scope="module")
def logits(frozen):
    return {"texts": predict(frozen, TEXTS), "pairs": predict(frozen, PAIRS)}


@pytest.fixture(scope="module")
def losses(logits):
    return {kind: cross_entropy(values, LABELS) for kind, values in logits.items()}


def fit(classifier, *args, **kwargs):
    return classifier.fit(*args, **{"epochs": 1, "verbose": 0, **kwargs}).history


@pytest.mark.traced
def test_many_lengths_and_batch_sizes_are_traced_once():
    classifier = small_classifier(sizes={"num_layers": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in (30, 17, 9):
            texts = ["好" * (i % 27) for i in range(count)]
            predict(classifier, texts, batch_size=2)
    assert classifier.predict_function.experimental_get_tracing_count() == 1


def test_every_form_of_training_data_has_the_same_loss(frozen, losses, logits):
    features = frozen.preprocessor(TEXTS)
    features = {name: value.numpy() for name, value in features.items()}
    for x, y in (
        (TEXTS, LABELS),
        ((TEXTS,), LABELS),
        (tf.constant(TEXTS), tf.constant(LABELS)),
        (unequal_batches((TEXTS, LABELS), 4, 3), None),
        (frozen.read_examples(TEXTS, LABELS), None),
        (features, np.array(LABELS)),
        ((np.array(TEXTS), np.array(OTHERS)), np.array(LABELS)),
    ):
        kind = "pairs" if isinstance(x, tuple) and len(x) == 2 else "texts"
        options = {} if y is None else {"batch_size": 4}
        history = fit(frozen, x, y, **options)
        assert history["loss"] == pytest.approx([losses[kind].mean()], abs=1e-5)
        accuracy = np.mean(logits[kind].argmax(axis=1) == LABELS)
        assert history["accuracy"] == pytest.approx([accuracy])
        assert frozen.pairs == (kind == "pairs")
        loss, _ = frozen.evaluate(x, y, verbose=0)
        assert loss == pytest.approx(losses[kind].mean(), abs=1e-5)


def test_sample_weights_and_class_weights_stay_with_their_texts(frozen, losses):
    weighted = losses["texts"] * WEIGHTS
    history = fit(frozen, TEXTS, LABELS, sample_weight=WEIGHTS, batch_size=3)
    assert history["loss"] == pytest.approx([weighted.mean()], abs=1e-5)
    weights = {0: 0.5, 1: 3.0, 2: 0.0}
    history = fit(frozen, TEXTS, LABELS, class_weight=weights, batch_size=3)
    expected = np.mean([weights[label] for label in LABELS] * losses["texts"])
    assert history["loss"] == pytest.approx([expected], abs=1e-5)
    # Classes that are left out weigh 1.
    history = fit(frozen, TEXTS, LABELS, class_weight={1: 3.0}, batch_size=3)
    expected = np.mean(np.where(np.array(LABELS) == 1, 3, 1) * losses["texts"])
    assert history["loss"] == pytest.approx([expected], abs=1e-5)
    assert not frozen.fit(TEXTS, LABELS, epochs=0, verbose=0).history


def test_validation_data_and_split(frozen, losses):
    weighted = losses["pairs"] * WEIGHTS
    data = (PAIRS, LABELS, WEIGHTS)
    history = fit(frozen, TEXTS, LABELS, validation_data=data, max_tokens=64)
    assert history["val_loss"] == pytest.approx([weighted.mean()], abs=1e-5)
    options = {"sample_weight": WEIGHTS, "validation_split": 0.4}
    history = fit(frozen, PAIRS, LABELS, **options)
    # The last examples.
    assert history["loss"] == pytest.approx([weighted[:4].mean()], abs=1e-5)
    assert history["val_loss"] == pytest.approx([weighted[4:].mean()], abs=1e-5)


def batch_shapes(model, method, *args, **kwargs):
    """Call the method and return the shapes of the batches and its result."""
    shapes, call = [], model.call

    def spy(inputs, *args, **kwargs):
        shapes.append(tuple(inputs["token_ids"].shape))
        return call(inputs, *args, **kwargs)

    model.call = spy
    try:
        return shapes, method(*args, verbose=0, **kwargs)
    finally:
        model.call = call


def test_a_token_budget_changes_no_output_and_no_loss(frozen, losses, logits):
    frozen.pairs = False
    shapes, outputs = batch_shapes(frozen, frozen.predict, TEXTS, max_tokens=64)
    np.testing.assert_allclose(outputs, logits["texts"], atol=1e-5)
    # Where functions run eagerly, no graph is traced for nothing.
    assert not frozen.predict_function.experimental_get_tracing_count()
    assert sum(rows for rows, _ in shapes) == 7
    assert all(rows * time <= 64 for rows, time in shapes)
    options = {"max_tokens": 64, "sample_weight": WEIGHTS}
    _, scores = batch_shapes(frozen, frozen.evaluate, PAIRS, LABELS, **options)
    assert scores[0] == pytest.approx((losses["pairs"] * WEIGHTS).mean(), abs=1e-5)


def test_datasets_grouped_by_length_keep_labels_and_weights(frozen, losses):
    # The last batch is smaller, and the weights distinguish the examples.
    dataset = unequal_batches((PAIRS, LABELS, WEIGHTS), 3, 3, 1)
    expected = pytest.approx([(losses["pairs"] * WEIGHTS).mean()], abs=1e-5)
    for most in (None, 24):
        data = bucket_by_length(dataset, frozen.preprocessor, max_tokens=most)
        options = {"validation_data": data, "epochs": 1}
        shapes, done = batch_shapes(frozen, frozen.fit, data, **options)
        assert done.history["loss"] == expected
        assert done.history["val_loss"] == expected
    assert all(rows * time <= 24 for rows, time in shapes) and len(shapes) > 4
