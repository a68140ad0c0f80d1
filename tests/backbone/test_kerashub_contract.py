"""What KerasHub promises of a backbone: files, types, LoRA, int8, what trains."""

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import BFLOAT16
from small_backbone import (
    INPUTS,
    SMALL,
    are_close,
    difference,
    small_backbone,
)

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints import load_checkpoint
from albert_tf.checkpoints.layout import CheckpointError

CHANGES = {
    "plain": {},
    "everything else": {
        "num_attention_groups": 2,
        "num_ffn_groups": 3,
        "num_inner_repetitions": 2,
        "embedding_projection": "after_layer_norm",
        "normalize_first": True,
        "activation": "relu",
        "hidden_dropout": 0.1,
        "attention_dropout": 0.2,
        "num_segments": 3,
    },
}
both = pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
TARGETS = {
    "sequence_output": np.zeros((3, 17, 48)),
    "pooled_output": np.zeros((3, 48)),
}


def from_keras_file(backbone, folder):
    backbone.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def from_preset(backbone, folder):
    backbone.save_to_preset(str(folder))
    return keras_hub.models.Backbone.from_preset(str(folder))


files = pytest.mark.parametrize("through", [from_keras_file, from_preset])


def predict(backbone):
    return backbone.predict(INPUTS, verbose=0)


def train(backbone):
    backbone.compile(keras.optimizers.SGD(0.1), loss="mse", run_eagerly=True)
    backbone.fit(INPUTS, TARGETS, epochs=2, verbose=0)


def num_products(backbone):
    """Matrix products on the way to the pooled output."""
    # The embedding's two, the pooler's, and six of each block.
    return 3 + 6 * len(backbone.encoder_blocks)


# === Files and types ===


@both
@files
def test_file_round_trip(tmp_path, changes, through):
    backbone = small_backbone(**changes)
    loaded = through(backbone, tmp_path)
    assert type(loaded) is AlbertBackbone
    assert {**SMALL, **changes}.items() <= loaded.get_config().items()
    assert difference(backbone(INPUTS), loaded(INPUTS)) == 0.0


@both
def test_mixed_bfloat16(changes):
    expected = small_backbone(**changes)(INPUTS)
    backbone = small_backbone(**changes, dtype="mixed_bfloat16")
    with tf.GradientTape() as tape:
        outputs = backbone(INPUTS)
        loss = tf.reduce_mean(tf.cast(outputs["sequence_output"], "float32") ** 2)
    assert outputs.keys() == expected.keys()
    assert difference(outputs, expected) > 0.0
    assert are_close(outputs, expected, num_products(backbone) * BFLOAT16)
    assert {v.dtype for v in backbone.weights} == {"float32"}
    assert backbone.dtype_policy.compute_dtype == "bfloat16"
    for gradient in tape.gradient(loss, [v.value for v in backbone.weights[:-2]]):
        assert np.isfinite(gradient).all()


# === What trains ===


def test_dropout_is_active_in_training_only():
    plain, dropping = small_backbone(), small_backbone(hidden_dropout=0.3)
    assert difference(plain(INPUTS), dropping(INPUTS, training=False)) == 0.0
    assert difference(plain(INPUTS), dropping(INPUTS, training=True)) > 0.1
    assert difference(plain(INPUTS, training=True), plain(INPUTS)) == 0.0


def weights_that_move(backbone):
    before = backbone.get_weights()
    train(backbone)
    return {
        variable.path
        for variable, old in zip(backbone.weights, before, strict=True)
        if np.abs(variable.numpy() - old).max() > 0.0
    }


def test_fit_reaches_every_weight():
    backbone = small_backbone(num_ffn_groups=3)
    assert weights_that_move(backbone) == {v.path for v in backbone.weights}


def test_frozen_embeddings_stay():
    backbone = small_backbone()
    frozen = {v.path for v in backbone.embedding.weights}
    backbone.freeze_embeddings()
    moved = weights_that_move(backbone)
    assert moved == {v.path for v in backbone.weights} - frozen


# === LoRA ===


def test_lora_trains_two_small_matrices_alone():
    backbone = small_backbone()
    before = predict(backbone)
    backbone.enable_lora(4)
    assert difference(predict(backbone), before) == 0.0
    # One block, called three times, is adapted once.
    a, b = backbone.trainable_variables
    assert (a.shape, b.shape) == ((48, 4), (4, 3 * 48))
    assert weights_that_move(backbone) == {a.path, b.path}
    assert difference(predict(backbone), before) > 0.0


@pytest.mark.parametrize(
    ("names", "groups"), [(None, 1), (["output_dense", "pooled_dense"], 3)]
)
def test_lora_weights_are_the_same_in_a_fresh_backbone(tmp_path, names, groups):
    changes = {"num_attention_groups": groups}
    backbone, fresh = small_backbone(**changes), small_backbone(**changes)
    backbone.enable_lora(4, names)
    train(backbone)
    backbone.save_lora_weights(tmp_path / "a.lora.h5")
    # What was traced before must not stay.
    assert difference(predict(fresh), predict(backbone)) > 0.01
    fresh.load_lora_weights(tmp_path / "a.lora.h5")
    assert are_close(predict(fresh), predict(backbone))


@files
def test_lora_is_merged_in_files(tmp_path, through):
    backbone = small_backbone()
    backbone.enable_lora(4)
    train(backbone)
    assert are_close(through(backbone, tmp_path)(INPUTS), backbone(INPUTS))


def test_lora_of_no_layer_is_refused_and_nothing_frozen():
    backbone = small_backbone()
    with pytest.raises(ValueError, match="names of .*'query_key_value'.*: 'query'"):
        backbone.enable_lora(4, ["query", "output_dense"])
    assert len(backbone.trainable_variables) == len(backbone.weights)


def test_lora_weights_of_other_layers_are_refused(tmp_path):
    backbone, other = small_backbone(), small_backbone()
    backbone.enable_lora(4)
    backbone.save_lora_weights(tmp_path / "a.lora.h5")
    other.enable_lora(4, ["output_dense"])
    with pytest.raises(ValueError, match=r"\['query_key_value'\].*'output_dense'"):
        other.load_lora_weights(tmp_path / "a.lora.h5")


# === Quantization ===


@pytest.mark.parametrize(
    ("dtype", "changes"),
    [
        ("float32", CHANGES["plain"]),
        ("mixed_bfloat16", {**CHANGES["plain"], "num_layers": 1}),
        pytest.param("float32", CHANGES["everything else"], marks=pytest.mark.slow),
        pytest.param(
            "mixed_bfloat16", CHANGES["everything else"], marks=pytest.mark.slow
        ),
    ],
    ids=["float32", "mixed", "float32 with everything", "mixed with everything"],
)
def test_int8(tmp_path, changes, dtype):
    backbone = small_backbone(**changes, dtype=dtype)
    expected = backbone(INPUTS)
    backbone.quantize("int8")
    outputs = backbone(INPUTS)
    floats = {v.path for v in backbone.weights if v.dtype != "int8" and v.ndim > 1}
    assert floats == {"embedding/segment_table", "embedding/position_table"}
    # Of each product one factor in 127 steps, and the other.
    step = 1 / 127 + (BFLOAT16 if dtype == "mixed_bfloat16" else 0)
    assert are_close(outputs, expected, num_products(backbone) * step)

    loaded = from_keras_file(backbone, tmp_path)
    assert loaded.dtype_policy.name == dtype
    assert difference(loaded(INPUTS), outputs) == 0.0
    # What was loaded can be saved.
    again = from_preset(loaded, tmp_path / "preset")
    assert again.token_embedding.embeddings.dtype == "int8"
    if dtype == "float32":
        assert difference(again(INPUTS), outputs) == 0.0
    # A preset leaves to its reader what to compute in.
    again = AlbertBackbone.from_preset(str(tmp_path / "preset"), dtype="bfloat16")
    assert again.token_embedding.dtype_policy.name == "int8_from_bfloat16"


def test_int8_files_are_small(tmp_path):
    backbone = small_backbone(vocabulary_size=4000, hidden_dim=96, embedding_dim=64)
    backbone.save(tmp_path / "float32.keras")
    predict(backbone)
    backbone.quantize("int8")
    predict(backbone)
    backbone.save(tmp_path / "int8.keras")
    float32, int8 = (
        (tmp_path / f"{name}.keras").stat().st_size for name in ("float32", "int8")
    )
    assert int8 < 0.4 * float32


def test_modes_that_calibrate_one_block_after_another_are_refused():
    with pytest.raises(ValueError, match='"gptq".*`quantize."int8".`'):
        small_backbone().get_quantization_layer_structure("gptq")


def test_int8_is_no_checkpoint_of_another_layout(tmp_path):
    backbone = small_backbone()
    backbone.quantize("int8")
    backbone.save(tmp_path / "int8.keras")
    with pytest.raises(CheckpointError, match="quantized: its .* is int8"):
        load_checkpoint(tmp_path / "int8.keras")
