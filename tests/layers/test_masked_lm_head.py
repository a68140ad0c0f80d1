"""The masked language model head: scores against NumPy, tied to the embedding."""

import numpy as np
import pytest
from numpy_reference import (
    ACTIVATIONS,
    assert_close,
    dense,
    layer_norm,
    randomize,
    weight,
)

from albert_tf.layers import FactorizedEmbedding, MaskedLMHead

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
    for layer in (embedding.token_embedding, embedding.projection):
        layer.quantize("int8")
    assert_close(head(hidden, positions), expected, tolerance=3 / 127)
