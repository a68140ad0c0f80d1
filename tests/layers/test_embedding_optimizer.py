"""Tokens that occur twice in a batch: their gradients are summed before AdamW.

Keras' own Embedding updates such rows differently.
"""

import keras
import numpy as np
from numpy_reference import assert_close

from albert_tf.layers import FactorizedEmbedding

VOCABULARY, WIDTH, HIDDEN, STEPS = 24, 16, 48, 5
RATE, DECAY, BETA_1, BETA_2 = 1e-2, 0.1, 0.9, 0.999
# Large enough that a gradient near zero is no step of rounding errors.
EPSILON = 1e-4
TOKEN_IDS = np.random.default_rng(5).permutation(VOCABULARY).reshape(3, 8) % 7


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


def test_factorized_embedding_follows_adamw_by_hand():
    tokens = keras.Input((None,), dtype="int32")
    layer = FactorizedEmbedding(VOCABULARY, WIDTH, HIDDEN)
    model = keras.Model(tokens, layer(tokens, keras.ops.zeros_like(tokens)))
    for variable in layer.weights:
        variable.trainable = variable is layer.token_table
    rng = np.random.default_rng(7)
    target = rng.normal(size=(*TOKEN_IDS.shape, HIDDEN))
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

    optimizer = keras.optimizers.AdamW(
        RATE, weight_decay=DECAY, beta_1=BETA_1, beta_2=BETA_2, epsilon=EPSILON
    )
    model.compile(optimizer, loss="mse")
    model.fit(TOKEN_IDS, target, batch_size=3, epochs=STEPS, verbose=0)
    expected = adamw_by_hand(start, TOKEN_IDS, row_gradient)
    assert np.abs(expected - start).max() > 0.01
    assert_close(layer.token_table, expected)
