"""Promises of a KerasHub backbone: files, precision, frozen weights, LoRA, int8."""

import keras
import keras_hub
import numpy as np
import pytest
from numpy_reference import BFLOAT16
from small_backbone import INPUTS, SMALL, are_close, difference, small_backbone

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints import load_checkpoint
from albert_tf.checkpoints.layout import CheckpointError

EVERYTHING = {
    "num_attention_groups": 2,
    "num_ffn_groups": 3,
    "num_inner_repetitions": 2,
    "embedding_projection": "after_layer_norm",
    "normalize_first": True,
    "activation": "relu",
    "hidden_dropout": 0.1,
    "attention_dropout": 0.2,
    "num_segments": 3,
}
TARGETS = {"sequence_output": np.zeros((3, 17, 48)), "pooled_output": np.zeros((3, 48))}


def from_keras_file(backbone, folder):
    backbone.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def from_preset(backbone, folder):
    backbone.save_to_preset(str(folder))
    return keras_hub.models.Backbone.from_preset(str(folder))


def predict(backbone):
    return backbone.predict(INPUTS, verbose=0)


def train(backbone):
    backbone.compile(keras.optimizers.SGD(0.1), loss="mse", run_eagerly=True)
    backbone.fit(INPUTS, TARGETS, epochs=2, verbose=0)


def num_products(backbone):
    """Count the matrix products on the way to the pooled output."""
    # Two of the embedding, one of the pooler, and six per block.
    return 3 + 6 * len(backbone.encoder_blocks)


@pytest.mark.parametrize("through", [from_keras_file, from_preset])
def test_files_keep_every_argument_and_weight(tmp_path, through):
    backbone = small_backbone(**EVERYTHING)
    loaded = through(backbone, tmp_path)
    assert type(loaded) is AlbertBackbone
    assert {**SMALL, **EVERYTHING}.items() <= loaded.get_config().items()
    assert difference(backbone(INPUTS), loaded(INPUTS)) == 0.0


def test_dropout_is_active_in_training_only():
    plain = small_backbone()
    expected = plain(INPUTS)
    # GELU is rounded otherwise in training.
    assert difference(plain(INPUTS, training=True), expected) < 1e-5
    for rate in ("hidden_dropout", "attention_dropout"):
        dropping = small_backbone(**{rate: 0.3})
        assert difference(dropping(INPUTS, training=False), expected) == 0.0
        assert difference(dropping(INPUTS, training=True), expected) > 0.01


def moving_weights(backbone):
    """Train and return the paths of the weights that changed."""
    before = backbone.get_weights()
    train(backbone)
    return {
        variable.path
        for variable, old in zip(backbone.weights, before, strict=True)
        if np.abs(variable.numpy() - old).max() > 0.0
    }


def test_training_reaches_every_weight_that_is_not_frozen():
    backbone = small_backbone(num_ffn_groups=3)
    weights = {v.path for v in backbone.weights}
    assert moving_weights(backbone) == weights
    backbone.freeze_embeddings()
    frozen = {v.path for v in backbone.embedding.weights}
    assert moving_weights(backbone) == weights - frozen


# Traced, because what was traced before loading must not be used after it.
@pytest.mark.traced
def test_lora_weights_load_into_a_fresh_backbone(tmp_path):
    changes = {"num_layers": 2, "num_attention_groups": 2}
    backbone, fresh = small_backbone(**changes), small_backbone(**changes)
    backbone.enable_lora(4, ["query_key_value", "output_dense"])
    train(backbone)
    backbone.save_lora_weights(tmp_path / "a.lora.h5")
    assert difference(predict(fresh), predict(backbone)) > 0.001
    fresh.load_lora_weights(tmp_path / "a.lora.h5")
    assert are_close(predict(fresh), predict(backbone))
    other = small_backbone(**changes)
    with pytest.raises(ValueError, match="names of .*'query_key_value'.*: ..query'."):
        other.enable_lora(4, ["query", "output_dense"])
    assert len(other.trainable_variables) == len(other.weights)
    other.enable_lora(4)
    with pytest.raises(ValueError, match="a backbone without LoRA"):
        other.load_lora_weights(tmp_path / "a.lora.h5")


@pytest.mark.parametrize(
    ("through", "mode"),
    [
        (from_keras_file, None),
        pytest.param(from_preset, "int8", marks=pytest.mark.slow),
    ],
)
def test_lora_survives_files_and_is_folded(tmp_path, through, mode):
    backbone = small_backbone(num_layers=1)
    if mode:
        backbone.quantize(mode)
    backbone.enable_lora(4, ["query_key_value", "output_dense"])
    train(backbone)
    loaded = through(backbone, tmp_path)
    for old, new in zip(
        backbone.trainable_variables, loaded.trainable_variables, strict=True
    ):
        assert old.path == new.path
        # With zeros in both factors, as Keras loads them, neither has a gradient.
        np.testing.assert_array_equal(old, new)
        assert np.abs(new).max() > 0
    assert difference(loaded(INPUTS), backbone(INPUTS)) == 0.0
    if mode is None:
        assert int(loaded.optimizer.iterations) == int(backbone.optimizer.iterations)
        plain = load_checkpoint(tmp_path / "model.keras")
        assert are_close(plain(INPUTS), backbone(INPUTS))
        assert len(plain.trainable_variables) == len(small_backbone().weights)


@pytest.mark.parametrize(
    ("dtype", "changes"),
    [
        ("float32", {"num_layers": 2}),
        pytest.param("mixed_bfloat16", {"num_layers": 1}, marks=pytest.mark.slow),
        pytest.param("float32", EVERYTHING, marks=pytest.mark.nightly),
        pytest.param("mixed_bfloat16", EVERYTHING, marks=pytest.mark.nightly),
    ],
)
def test_int8(tmp_path, changes, dtype):
    backbone = small_backbone(**changes, dtype=dtype)
    expected = backbone(INPUTS)
    backbone.quantize("int8")
    outputs = backbone(INPUTS)
    floats = {v.path for v in backbone.weights if v.dtype != "int8" and v.ndim > 1}
    assert floats == {"embedding/segment_table", "embedding/position_table"}
    # Each factor of a product is one of 127 steps.
    step = 1 / 127 + (BFLOAT16 if dtype == "mixed_bfloat16" else 0)
    assert are_close(outputs, expected, num_products(backbone) * step)

    loaded = from_keras_file(backbone, tmp_path)
    assert loaded.dtype_policy.name == dtype
    assert difference(loaded(INPUTS), outputs) == 0.0
    # A loaded model can be saved.
    again = from_preset(loaded, tmp_path / "preset")
    assert again.token_embedding.embeddings.dtype == "int8"
    if dtype == "float32":
        assert difference(again(INPUTS), outputs) == 0.0
    # The reader of a preset chooses the precision.
    again = AlbertBackbone.from_preset(str(tmp_path / "preset"), dtype="bfloat16")
    assert again.token_embedding.dtype_policy.name == "int8_from_bfloat16"
    with pytest.raises(CheckpointError, match="holds int8"):
        load_checkpoint(tmp_path / "model.keras")
