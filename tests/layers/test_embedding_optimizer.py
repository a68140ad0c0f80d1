"""A token that occurs twice in a batch must move as if its gradients were summed."""

import keras
import numpy as np
import pytest
from numpy_reference import assert_close

from albert_tf.layers import FactorizedEmbedding

VOCABULARY, WIDTH, HIDDEN, STEPS = 24, 16, 48, 5
RATE, DECAY, BETA_1, BETA_2 = 1e-2, 0.1, 0.9, 0.999
# Not so small that a gradient near zero is a step of rounding errors.
EPSILON = 1e-4
UNIQUE = np.random.default_rng(5).permutation(VOCABULARY).reshape(3, 8)
REPEATED = UNIQUE % 7


def adamw_by_hand(table, token_ids, row_gradient):
    """AdamW with decoupled decay on the dense gradient of a lookup table."""
    table = table.astype("float64")
    m, v = np.zeros_like(table), np.zeros_like(table)
    for step in range(1, STEPS + 1):
        gradient = np.zeros_like(table)
        np.add.at(gradient, token_ids, row_gradient(table[token_ids]))
        table = table - RATE * DECAY * table
        m = BETA_1 * m + (1 - BETA_1) * gradient
        v = BETA_2 * v + (1 - BETA_2) * gradient**2
        rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
        table = table - rate * m / (np.sqrt(v) + EPSILON)
    return table


def fit(model, inputs, target):
    optimizer = keras.optimizers.AdamW(
        RATE, weight_decay=DECAY, beta_1=BETA_1, beta_2=BETA_2, epsilon=EPSILON
    )
    model.compile(optimizer, loss="mse", run_eagerly=True)
    model.fit(inputs, target, batch_size=3, epochs=STEPS, verbose=0)


def sparse_embedding_difference(token_ids):
    """How far Keras' own Embedding ends from AdamW by hand."""
    tokens = keras.Input((None,), dtype="int32")
    layer = keras.layers.Embedding(VOCABULARY, WIDTH)
    model = keras.Model(tokens, layer(tokens))
    target = np.random.default_rng(6).normal(size=(*token_ids.shape, WIDTH))
    start = layer.embeddings.numpy()
    fit(model, token_ids, target)
    expected = adamw_by_hand(
        start, token_ids, lambda rows: 2 * (rows - target) / target.size
    )
    return np.abs(layer.embeddings.numpy() - expected).max()


def test_control_keras_embedding_is_wrong_with_repeated_tokens_only():
    # Of values near 1, in float32.
    assert sparse_embedding_difference(UNIQUE) < 1e-5
    assert sparse_embedding_difference(REPEATED) > 1e-3


@pytest.mark.parametrize("token_ids", [UNIQUE, REPEATED], ids=["unique", "repeated"])
def test_factorized_embedding_follows_adamw_by_hand(token_ids):
    tokens = keras.Input((None,), dtype="int32")
    layer = FactorizedEmbedding(VOCABULARY, WIDTH, HIDDEN)
    model = keras.Model(tokens, layer(tokens, keras.ops.zeros_like(tokens)))
    for variable in layer.weights:
        variable.trainable = variable is layer.token_table
    rng = np.random.default_rng(7)
    target = rng.normal(size=(*token_ids.shape, HIDDEN))
    for variable in (layer.token_table, layer.projection.kernel):
        variable.assign(rng.normal(size=variable.shape))
    start = layer.token_table.numpy()
    projection = layer.projection.kernel.numpy().astype("float64")
    constant = layer.segment_table.numpy()[0] + layer.position_table.numpy()[:8]

    def row_gradient(rows):
        x = rows @ projection + constant
        deviation = x.std(-1, keepdims=True)
        y = (x - x.mean(-1, keepdims=True)) / deviation
        dy = 2 * (y - target) / target.size
        dx = dy - dy.mean(-1, keepdims=True) - y * (dy * y).mean(-1, keepdims=True)
        return dx / deviation @ projection.T

    fit(model, token_ids, target)
    expected = adamw_by_hand(start, token_ids, row_gradient)
    assert np.abs(expected - start).max() > 0.01
    assert_close(layer.token_table, expected)
