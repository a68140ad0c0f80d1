"""The factorized embedding: lookup, gradients and limits."""

import keras
import numpy as np
import pytest
from numpy_reference import assert_close, embedding, randomize

from albert_tf.layers import FactorizedEmbedding, TokenEmbedding

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


@pytest.mark.parametrize("order", ["before_layer_norm", "after_layer_norm"])
def test_lookup_matches_numpy(order):
    ids = np.random.default_rng(3).integers(VOCABULARY, size=(3, 17))
    segments = (np.arange(17) >= np.array([[9], [17], [4]])).astype("int32")
    layer = new_embedding(order)
    is_first = order == "before_layer_norm"
    assert_close(layer(ids, segments), embedding(ids, segments, layer, is_first))


def test_too_long_texts_are_refused_with_both_lengths():
    layer = new_embedding("after_layer_norm")
    ids = np.ones((2, LONGEST + 1), "int32")
    assert layer(ids[:, 1:], ids[:, 1:]).shape == (2, LONGEST, HIDDEN)
    for too_long in (ids, keras.Input((LONGEST + 1,), dtype="int32")):
        with pytest.raises(ValueError, match="21 tokens.* 20 positions.*length"):
            layer(too_long, too_long)
    with pytest.raises(ValueError, match="before_layer_norm.*after.*'between'"):
        FactorizedEmbedding(VOCABULARY, WIDTH, HIDDEN, projection="between")


def test_repeated_tokens_follow_adamw_by_hand():
    """Keras' own Embedding updates tokens that occur twice in a batch differently."""
    steps, learning_rate, decay, beta_1, beta_2 = 5, 1e-2, 0.1, 0.9, 0.999
    # Large enough that a gradient near zero is no step of rounding errors.
    epsilon = 1e-4
    rng = np.random.default_rng(5)
    token_ids = rng.permutation(24).reshape(3, 8) % 7
    target = rng.normal(size=(3, 8, 16))
    layer = TokenEmbedding(24, 16)
    model = keras.Sequential([keras.Input((8,), dtype="int32"), layer])
    start = table = layer.get_weights()[0].astype("float64")
    m, v = np.zeros_like(table), np.zeros_like(table)
    for step in range(1, steps + 1):
        gradient = np.zeros_like(table)
        np.add.at(gradient, token_ids, 2 * (table[token_ids] - target) / target.size)
        table = table - learning_rate * decay * table
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        rate = learning_rate * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        table = table - rate * m / (np.sqrt(v) + epsilon)

    optimizer = keras.optimizers.AdamW(
        learning_rate, weight_decay=decay, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon
    )
    model.compile(optimizer, loss="mse")
    model.fit(token_ids, target, batch_size=3, epochs=steps, verbose=0)
    assert np.abs(table - start).max() > 0.01
    assert_close(layer.embeddings, table)
