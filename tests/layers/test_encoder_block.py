"""The encoder block against NumPy: masks and shared halves."""

import keras
import numpy as np
import pytest
from numpy_reference import assert_close, encoder_block, randomize

from albert_tf.layers import EncoderBlock

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
    y, scores = block(keras.Input((TIME, HIDDEN)), return_attention_scores=True)
    assert (y.shape[1:], scores.shape[1:]) == ((TIME, HIDDEN), (HEADS, TIME, TIME))
    with pytest.raises(ValueError, match="multiple of `num_heads`.*48, num_heads=5"):
        EncoderBlock(INNER, 5).build((None, None, HIDDEN))
