"""Attributions of characters: they add up and belong to the right characters."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import CLS, PAD, SEP, TEXTS, call, small_classifier, token_id

from albert_tf.models import AlbertMultiLabelClassifier
from albert_tf.tools import IntegratedGradients


def sharpened(factor=8.0, **kwargs):
    """Return a classifier whose probabilities are far apart, none of them near 1."""
    classifier = small_classifier(**kwargs)
    kernel, bias = classifier.output_dense.weights
    encoder = keras.Model(classifier.input, classifier.output_dense.input)
    features = encoder.predict(classifier.preprocessor(TEXTS), verbose=0)
    kernel.assign(kernel * factor)
    bias.assign(-features.mean(axis=0) @ kernel.numpy())
    return classifier


def probabilities(classifier, x):
    return np.asarray(classifier.postprocess(call(classifier, x))["probabilities"])


@pytest.fixture(scope="module")
def explain():
    return IntegratedGradients(sharpened(labels=["差", "中", "好"]))


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"pooling_mode": "first_last_mean", "cls": AlbertMultiLabelClassifier}],
    ids=["cls", "first_last_mean multi-label"],
)
def test_the_sum_is_the_difference_of_the_outputs(kwargs):
    classifier = sharpened(**kwargs)
    text = "很好吃，我想 😀你来吧"
    expected = probabilities(classifier, [text])[0]
    explain = IntegratedGradients(classifier)
    for target in range(3):
        found = explain(text, target, tolerance=1e-3)
        assert found.label == str(target)
        assert found.output == pytest.approx(expected[target], abs=1e-6)
        difference = found.output - found.baseline
        assert found.values[0].sum() == pytest.approx(difference, abs=1e-3)
        assert found.error < 1e-3
        # Different values, and 0 for the space.
        assert np.ptp(found.values[0]) > 1e-3 and found.values[0][6] == 0


def test_attributions_are_those_of_a_riemann_sum(explain):
    """Sum along the path from [PAD], with gradients by differences."""
    classifier = explain.classifier
    backbone, text = classifier.backbone, "太好了"
    ids = tf.constant([[CLS, *map(token_id, text), SEP]])
    blank = tf.constant([[CLS, PAD, PAD, PAD, SEP]])
    mask, segments = tf.ones_like(ids), tf.zeros_like(ids)
    start, end = (backbone.embedding(x, segments) for x in (blank, ids))

    def probability(vectors):
        for block in backbone.encoder_blocks:
            vectors = block(vectors, padding_mask=tf.repeat(mask, len(vectors), axis=0))
        logits = classifier.output_dense(backbone.pooled_dense(vectors[:, 0]))
        return keras.ops.softmax(logits)[:, 2].numpy().astype("float64")

    points = (np.arange(200) + 0.5)[:, None, None] / 200
    path = tf.constant(start + points.astype("float32") * (end - start))
    expected = []
    for token in (1, 2, 3):
        step = np.zeros((1, 5, 1), "float32")
        step[0, token] = 0.01
        change = step * (end - start)
        slopes = (probability(path + change) - probability(path - change)) / 0.02
        expected.append(slopes.mean())
    found = explain(text, target=2)
    assert found.values[0] == pytest.approx(np.array(expected), abs=2e-4)
    assert found.baseline == pytest.approx(probability(start)[0], abs=1e-6)


def test_pairs_empty_texts_and_truncated_texts(explain):
    found = explain(("好吃吗？", "abc 很好"))
    assert [len(values) for values in found.values] == [4, 6]
    # "abc" is three tokens, the space none.
    assert found.values[1][3] == 0 and np.abs(found.values[1][[0, 4]]).min() > 0
    assert found.error < 0.01
    for text in (" \t", ("", "")):
        assert explain(text).error < 0.01
    with pytest.warns(UserWarning, match="is off by .* after 8 steps"):
        explain("好吃", steps=1, tolerance=0.0)
    (values,) = explain("好吃" * 30).values
    read = explain.classifier.preprocessor.sequence_length - 2
    assert (values[:read] != 0).all() and (values[read:] == 0).all()
