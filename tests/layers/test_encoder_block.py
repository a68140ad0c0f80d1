"""The encoder block against NumPy: masks and shared halves."""

import keras
import numpy as np
import pytest
from numpy_reference import assert_close, assert_equal, encoder_block, randomize

from albert_tf.layers import AttentionBlock, EncoderBlock

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


@pytest.mark.parametrize(("length", "normalize_first"), [(1, False), (5, True)])
def test_output_length_computes_the_first_positions(length, normalize_first):
    block = new_block(normalize_first=normalize_first)
    pairs = np.tril(np.ones((BATCH, TIME, TIME), "int32"), k=3)
    masks = {"padding_mask": PADDING_MASK, "attention_mask": pairs}
    y, scores = block(X, **masks, return_attention_scores=True)
    first, first_scores = block(
        X, **masks, return_attention_scores=True, output_length=length
    )
    assert first.shape == (BATCH, length, HIDDEN)
    assert_close(first, y[:, :length])
    assert_close(first_scores, scores[:, :, :length])


def test_blocks_can_share_one_half(tmp_path):
    inputs = keras.Input((None, HIDDEN))
    attention = AttentionBlock(HEADS)
    first = EncoderBlock(INNER, HEADS, attention=attention)
    second = EncoderBlock(INNER, HEADS, attention=attention)
    model = randomize(keras.Model(inputs, second(first(inputs))))
    assert len(model.weights) == 6 + 2 * 6
    allowed = np.ones((BATCH, TIME, TIME), bool)
    expected, _ = encoder_block(X, first, allowed)
    expected, _ = encoder_block(expected, second, allowed)
    assert_close(model(X), expected)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[1].attention is loaded.layers[2].attention
    assert_equal(model(X), loaded(X))
