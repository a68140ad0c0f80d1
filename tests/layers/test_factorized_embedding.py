"""The factorized embedding: lookup, scores, gradients and limits."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import BFLOAT16, assert_close, embedding, randomize

from albert_tf.layers import FactorizedEmbedding

ORDERS = ["before_layer_norm", "after_layer_norm"]
VOCABULARY, WIDTH, HIDDEN, LONGEST = 120, 16, 48, 20


def new_embedding(projection, **kwargs):
    layer = FactorizedEmbedding(
        VOCABULARY,
        WIDTH,
        HIDDEN,
        max_sequence_length=LONGEST,
        projection=projection,
        **kwargs,
    )
    layer.build((None, None))
    return randomize(layer)


@pytest.mark.parametrize("order", ORDERS)
def test_matches_numpy(order):
    ids = np.random.default_rng(3).integers(VOCABULARY, size=(3, 17))
    segments = (np.arange(17) >= np.array([[9], [17], [4]])).astype("int32")
    layer = new_embedding(order)
    expected = embedding(ids, segments, layer, order == "before_layer_norm")
    y = layer(ids, segments)
    assert y.shape == (3, 17, HIDDEN)
    assert_close(y, expected)


def test_too_long_texts_are_refused_with_both_lengths():
    layer = new_embedding("after_layer_norm")
    ids = np.ones((2, LONGEST + 1), "int32")
    assert layer(ids[:, 1:], ids[:, 1:]).shape == (2, LONGEST, HIDDEN)
    for too_long in (ids, keras.Input((LONGEST + 1,), dtype="int32")):
        with pytest.raises(ValueError, match="21 tokens.* 20 positions.*length"):
            layer(too_long, too_long)
    with pytest.raises(ValueError, match="before_layer_norm.*after.*'between'"):
        FactorizedEmbedding(VOCABULARY, WIDTH, HIDDEN, projection="between")


def test_mixed_bfloat16_sums_gradients_of_a_frequent_token_in_float32():
    """A sum of thousands in bfloat16 stops growing after 256 equal summands."""
    ids = np.full((200, 17), 7)
    direction = np.random.default_rng(10).normal(size=HIDDEN).astype("float32")
    gradients = {}
    for dtype in ("float32", "mixed_bfloat16"):
        layer = new_embedding("before_layer_norm", dtype=dtype)
        with tf.GradientTape() as tape:
            y = tf.cast(layer(ids, ids * 0), "float32")
            loss = tf.reduce_sum(y * direction)
        gradients[dtype] = tape.gradient(loss, layer.token_table.value).numpy()[7]
    scale = np.abs(gradients["float32"]).max()
    error = np.abs(gradients["mixed_bfloat16"] - gradients["float32"]).max()
    # The cast of the lookup, the projection and the LayerNorm round.
    assert 0.0 < error < 3 * BFLOAT16 * scale


@pytest.mark.parametrize("order", ORDERS)
def test_reverse_is_the_transposed_lookup(order):
    layer = new_embedding(order)
    x = np.random.default_rng(4).normal(size=(3, 5, layer.sum_dim))
    matrix = layer.token_table.numpy()
    if order == "before_layer_norm":
        matrix = matrix @ layer.projection.kernel.numpy()
    logits = layer.reverse(x.astype("float32"))
    assert logits.shape == (3, 5, VOCABULARY)
    assert_close(logits, x @ matrix.T)


def test_int8_lookup_and_scores_use_one_table():
    layer = new_embedding("before_layer_norm")
    x = np.random.default_rng(4).normal(size=(3, 5, layer.sum_dim)).astype("float32")
    expected = layer.reverse(x)
    layer.token_embedding.quantize("int8")
    layer.projection.quantize("int8")
    assert layer.token_table.dtype == layer.projection.kernel.dtype == "int8"
    # Two products, of weights that are one of 127 steps.
    assert_close(layer.reverse(x), expected, 2 / 127)
    rows = layer.token_embedding(np.arange(VOCABULARY))
    assert_close(layer.token_embedding.reverse(np.eye(WIDTH)), np.transpose(rows))
