"""Promises of every layer, one test each."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import randomize

from albert_tf import layers

BATCH, TIME, HIDDEN, WIDTH, VOCABULARY = 3, 17, 48, 16, 120
RNG = np.random.default_rng(1)
HIDDEN_STATES = (RNG.normal(size=(BATCH, TIME, HIDDEN)).astype("float32"),)
TOKEN_IDS = RNG.integers(VOCABULARY, size=(BATCH, TIME)).astype("int32")
IDS = (TOKEN_IDS, (np.arange(TIME) >= np.array([[9], [17], [4]])).astype("int32"))

HALF = {"hidden_dropout": 0.1, "normalize_first": True}
ATTENTION = {"num_heads": 4, "attention_dropout": 0.2, **HALF}
FEED_FORWARD = {"intermediate_dim": 96, "activation": "relu", **HALF}
EMBEDDING = {
    "vocabulary_size": VOCABULARY,
    "embedding_dim": WIDTH,
    "hidden_dim": HIDDEN,
    "max_sequence_length": 20,
    "num_segments": 3,
    "dropout": 0.1,
}
GOOGLE = {**EMBEDDING, "projection": "after_layer_norm"}
TABLE = {"input_dim": VOCABULARY, "output_dim": WIDTH}


def masked_lm_head(**kwargs):
    embedding = layers.FactorizedEmbedding(**GOOGLE)
    embedding.build((None, None))
    return layers.MaskedLMHead(embedding, **kwargs)


class Case(NamedTuple):
    new: Callable[..., keras.Layer]
    arguments: dict
    inputs: tuple
    num_weights: int
    output_shape: tuple = (TIME, HIDDEN)
    # Logits are float32 in any precision, because the loss is computed from them.
    mixed_dtype: str = "bfloat16"


BOTH = {**ATTENTION, **FEED_FORWARD}
RELU, LOGITS = {"activation": "relu"}, (5, VOCABULARY)
HEAD_INPUTS = (*HIDDEN_STATES, RNG.integers(TIME, size=(BATCH, 5)).astype("int32"))
CASES = {
    "AttentionBlock": Case(layers.AttentionBlock, ATTENTION, HIDDEN_STATES, 6),
    "FeedForwardBlock": Case(layers.FeedForwardBlock, FEED_FORWARD, HIDDEN_STATES, 6),
    "EncoderBlock": Case(layers.EncoderBlock, BOTH, HIDDEN_STATES, 12),
    "FactorizedEmbedding-zh": Case(layers.FactorizedEmbedding, EMBEDDING, IDS, 6),
    "FactorizedEmbedding-google": Case(layers.FactorizedEmbedding, GOOGLE, IDS, 7),
    "TokenEmbedding": Case(layers.TokenEmbedding, TABLE, IDS[:1], 1, (TIME, WIDTH)),
    "MaskedLMHead": Case(masked_lm_head, RELU, HEAD_INPUTS, 7 + 5, LOGITS, "float32"),
}
every_layer = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def built(case, **kwargs):
    layer = case.new(**case.arguments, **kwargs)
    layer.build(*(x.shape for x in case.inputs))
    return randomize(layer)


def test_every_public_layer_has_a_case():
    # Without weights; it has a file of tests.
    expected = {*layers.__all__} - {"WholeWordMaskGenerator"}
    assert {name.partition("-")[0] for name in CASES} == expected


@every_layer
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_outputs_and_gradients_of_every_weight(case, dtype):
    layer = built(case, dtype=dtype)
    assert len(layer.weights) == len(layer.trainable_weights) == case.num_weights
    with tf.GradientTape() as tape:
        output = layer(*case.inputs)
        loss = tf.reduce_sum(tf.cast(output, "float32") ** 3)
    expected = case.mixed_dtype if dtype == "mixed_bfloat16" else dtype
    assert keras.backend.standardize_dtype(output.dtype) == expected
    assert output.shape == (BATCH, *case.output_shape)
    values = [v.value for v in layer.trainable_weights]
    for v, gradient in zip(values, tape.gradient(loss, values), strict=True):
        if gradient is None:
            # The head reads only the table of the embedding.
            assert isinstance(layer, layers.MaskedLMHead), v.name
            continue
        assert isinstance(gradient, tf.Tensor) and gradient.dtype == "float32"
        assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0.0, v.name


@every_layer
def test_config_and_saving_in_a_functional_model(case, tmp_path):
    layer = case.new(**case.arguments)
    config = layer.get_config()
    assert case.arguments.items() <= config.items()
    assert type(layer).from_config(config).get_config() == config
    inputs = [keras.Input(x.shape[1:], dtype=x.dtype) for x in case.inputs]
    model = keras.Model(inputs, layer(*inputs))
    assert model.output.shape[1:] == case.output_shape
    randomize(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    found, expected = (x(list(case.inputs)) for x in (loaded, model))
    np.testing.assert_array_equal(found, expected)
