"""The masked language model head: scores against NumPy, tied to the embedding."""

import keras
import numpy as np
import pytest
from numpy_reference import (
    ACTIVATIONS,
    assert_close,
    assert_equal,
    dense,
    layer_norm,
    randomize,
    weight,
)

from albert_tf.layers import EncoderBlock, FactorizedEmbedding, MaskedLMHead

VOCABULARY, WIDTH, HIDDEN = 120, 16, 48


@pytest.mark.parametrize(
    ("order", "activation"),
    [("before_layer_norm", "gelu_approximate"), ("after_layer_norm", "relu")],
)
def test_matches_numpy(order, activation):
    embedding = FactorizedEmbedding(VOCABULARY, WIDTH, HIDDEN, projection=order)
    embedding.build((None, None))
    head = MaskedLMHead(embedding, activation=activation)
    head.build((None, None, HIDDEN))
    randomize(head)
    rng = np.random.default_rng(8)
    hidden = rng.normal(size=(3, 17, HIDDEN)).astype("float32")
    positions = rng.integers(17, size=(3, 5))
    x = np.take_along_axis(hidden, positions[..., None], axis=1).astype("float64")
    x = layer_norm(ACTIVATIONS[activation](dense(x, head.dense)), head.layer_norm)
    table = weight(head.embedding.token_table)
    if order == "before_layer_norm":
        table = table @ weight(head.embedding.projection.kernel)
    expected = x @ table.T + weight(head.bias)
    assert_close(head(hidden, positions), expected)


def test_stays_tied_after_saving(tmp_path):
    tokens, segments, positions = (
        keras.Input((None,), dtype="int32") for _ in range(3)
    )
    embedding = FactorizedEmbedding(VOCABULARY, WIDTH, HIDDEN)
    hidden = EncoderBlock(96, 4)(embedding(tokens, segments))
    logits = MaskedLMHead(embedding, activation="relu")(hidden, positions)
    model = randomize(keras.Model([tokens, segments, positions], logits))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")

    head = loaded.layers[-1]
    assert head.embedding in loaded.layers
    assert len(loaded.weights) == len(model.weights)
    ids = np.random.default_rng(9).integers(VOCABULARY, size=(3, 17))
    data = [ids, ids % 2, ids[:, :5] % 17]
    assert_equal(model(data), loaded(data))
