"""The encoder block against NumPy, and the attention of long texts."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import assert_close, encoder_block, randomize

from albert_tf.layers import AttentionBlock, EncoderBlock
from albert_tf.layers.attend import LONG

BATCH, TIME, HIDDEN, HEADS, INNER = 3, 17, 48, 4, 96


X = np.random.default_rng(1).normal(size=(BATCH, TIME, HIDDEN)).astype("float32")
PADDING_MASK = (np.arange(TIME) < np.array([[TIME], [11], [1]])).astype("int32")


def new_block(**kwargs):
    block = EncoderBlock(INNER, HEADS, **kwargs)
    block.build((None, None, HIDDEN))
    return randomize(block)


@pytest.mark.parametrize(
    ("activation", "normalize_first"), [("gelu_approximate", False), ("relu", True)]
)
def test_block_matches_numpy_with_any_mask(normalize_first, activation):
    block = new_block(normalize_first=normalize_first, activation=activation)
    # Not symmetric, so that query and key cannot be mixed up.
    pairs = np.random.default_rng(2).random((BATCH, TIME, TIME)) < 0.6
    pairs |= np.arange(TIME) == 0
    keys = PADDING_MASK[:, None].astype(bool).repeat(TIME, axis=1)
    padding, attention = {"padding_mask": PADDING_MASK}, {"attention_mask": pairs}
    for masks, allowed in (
        (padding, keys),
        (attention, pairs),
        ({**padding, **attention}, keys & pairs),
        ({}, np.ones_like(pairs)),
    ):
        expected, expected_scores = encoder_block(X, block, allowed, activation)
        y, scores = block(X, **masks, return_attention_scores=True)
        assert_close(scores, expected_scores)
        assert_close(y, expected)
        assert_close(block(X, **masks, training=True), expected)
    y, scores = block(keras.Input((TIME, HIDDEN)), return_attention_scores=True)
    assert (y.shape[1:], scores.shape[1:]) == ((TIME, HIDDEN), (HEADS, TIME, TIME))
    with pytest.raises(ValueError, match="multiple of `num_heads`.*48, num_heads=5"):
        EncoderBlock(INNER, 5).build((None, None, HIDDEN))


@pytest.mark.traced
@pytest.mark.parametrize(
    "dtype, rounding",
    [
        ("float64", 1e-12),
        pytest.param("float32", 1e-5, marks=pytest.mark.nightly),
        ("bfloat16", 0.05),
    ],
)
def test_long_texts_have_the_values_and_gradients_of_all_scores(dtype, rounding):
    block = AttentionBlock(HEADS, dtype=dtype)
    block.build((None, None, HIDDEN))
    randomize(block)
    random = np.random.default_rng(2)
    states = random.normal(size=(BATCH, LONG, HIDDEN))
    padding_mask = (np.arange(LONG) < np.array([[LONG], [111], [1]])).astype("int32")
    pairs = random.random((BATCH, LONG, LONG)) < 0.6
    weights = keras.random.normal((BATCH, 5, HIDDEN), seed=3, dtype="float64")

    def trained(by_example, masks):
        x = tf.cast(states, dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            options = {"output_length": 5, "return_attention_scores": not by_example}
            y = block(x, **masks, **options, training=True)
            y = y if by_example else y[0]
            loss = tf.reduce_sum(tf.cast(y, "float64") * weights)
        return [y, *tape.gradient(loss, [x, *block.trainable_variables])]

    for masks in ({"padding_mask": padding_mask, "attention_mask": pairs}, {}):
        expected = trained(False, masks)
        for found in (trained(True, masks), tf.function(trained)(True, masks)):
            for value, right in zip(found, expected, strict=True):
                value, right = (np.array(tf.cast(x, "float64")) for x in (value, right))
                np.testing.assert_allclose(
                    value, right, rtol=rounding, atol=rounding * abs(right).max()
                )
