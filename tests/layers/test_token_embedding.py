"""Tokens that occur twice in a batch: their gradients are summed before AdamW.

Keras' own Embedding updates such rows differently.
"""

import keras
import numpy as np
from numpy_reference import assert_close

from albert_tf.layers import TokenEmbedding

STEPS, RATE, DECAY, BETA_1, BETA_2 = 5, 1e-2, 0.1, 0.9, 0.999
# Large enough that a gradient near zero is no step of rounding errors.
EPSILON = 1e-4


def test_it_follows_adamw_by_hand():
    rng = np.random.default_rng(5)
    token_ids = rng.permutation(24).reshape(3, 8) % 7
    target = rng.normal(size=(3, 8, 16))
    layer = TokenEmbedding(24, 16)
    model = keras.Sequential([keras.Input((8,), dtype="int32"), layer])
    start = table = layer.get_weights()[0].astype("float64")
    m, v = np.zeros_like(table), np.zeros_like(table)
    for step in range(1, STEPS + 1):
        gradient = np.zeros_like(table)
        np.add.at(gradient, token_ids, 2 * (table[token_ids] - target) / target.size)
        table = table - RATE * DECAY * table
        m = BETA_1 * m + (1 - BETA_1) * gradient
        v = BETA_2 * v + (1 - BETA_2) * gradient**2
        rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
        table = table - rate * m / (np.sqrt(v) + EPSILON)

    optimizer = keras.optimizers.AdamW(
        RATE, weight_decay=DECAY, beta_1=BETA_1, beta_2=BETA_2, epsilon=EPSILON
    )
    model.compile(optimizer, loss="mse")
    model.fit(token_ids, target, batch_size=3, epochs=STEPS, verbose=0)
    assert np.abs(table - start).max() > 0.01
    assert_close(layer.embeddings, table)
