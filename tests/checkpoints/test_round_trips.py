"""Golden checkpoints through every layout and back: equal bits and outputs."""

import keras_hub
import numpy as np
import pytest
import safetensors.numpy
from checkpoint_files import (
    GOLDEN,
    LAYOUT_OF,
    NAMES,
    assert_golden,
    assert_golden_heads,
    assert_same_weights,
    read,
    weights_of,
)

import albert_tf
from albert_tf import convert_checkpoint, verify_conversion
from albert_tf.checkpoints import save_checkpoint
from albert_tf.models import AlbertPretrainer


def assert_same_tensors(folder, original):
    written = read(folder / "albert_model.ckpt")
    assert written.keys() == original.keys()
    for name, array in original.items():
        assert written[name].dtype == array.dtype, name
        assert np.array_equal(written[name], array), name


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        pytest.param("albert_zh_preln", "keras", marks=pytest.mark.slow),
        ("google_groups", "huggingface"),
    ],
)
def test_there_and_back(tmp_path, name, layout):
    convert_checkpoint(GOLDEN / name, tmp_path / "there", layout)
    model = AlbertPretrainer.from_checkpoint(tmp_path / "there")
    assert_same_weights(model, AlbertPretrainer.from_checkpoint(GOLDEN / name))
    assert_golden(model.backbone, name)
    assert_golden_heads(model, name)
    convert_checkpoint(tmp_path / "there", tmp_path / "back", LAYOUT_OF[name])
    assert_same_tensors(tmp_path / "back", weights_of(name))


def test_through_keras_hub(tmp_path):
    name = "google_groups"
    convert_checkpoint(GOLDEN / name, tmp_path / "there", "kerashub")
    backbone = albert_tf.load_checkpoint(tmp_path / "there")
    assert_same_weights(backbone, albert_tf.load_checkpoint(GOLDEN / name))
    folder = str(tmp_path / "there")
    assert_golden(keras_hub.models.AlbertBackbone.from_preset(folder), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_pretrainer_has_the_tensors_of_the_original(tmp_path, name):
    model = AlbertPretrainer.from_checkpoint(GOLDEN / name)
    save_checkpoint(model, tmp_path, layout=LAYOUT_OF[name])
    assert_same_tensors(tmp_path, weights_of(name))


def test_kernels_of_huggingface_are_transposed(tmp_path):
    """Their shape is [outputs, inputs]; no shape shows it where both are equal."""
    convert_checkpoint(GOLDEN / "google_v2", tmp_path, "huggingface")
    tensors = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    original = weights_of("google_v2")
    attention = "bert/encoder/transformer/group_0/inner_group_0/attention_1"
    theirs = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention"
    pairs = {x: f"{theirs}.{x}" for x in ("query", "key", "value")}
    pairs = {f"{attention}/self/{x}": y for x, y in pairs.items()}
    pairs[f"{attention}/output/dense"] = f"{theirs}.dense"
    pairs["bert/pooler/dense"] = "albert.pooler"
    for google, huggingface in pairs.items():
        kernel = original[f"{google}/kernel"]
        assert np.array_equal(tensors[f"{huggingface}.weight"], kernel.T), google


def test_a_conversion_lists_what_is_moved_and_left_out(tmp_path):
    done = convert_checkpoint(GOLDEN / "google_v2", tmp_path / "hf", "huggingface")
    assert done.layout == "google"
    read_names = [name for names, _, _ in done.moved for name in names]
    assert sorted(read_names) == sorted(weights_of("google_v2"))
    everything = read(GOLDEN / "google_v2" / "model.ckpt-best")
    assert sorted([*read_names, *done.left_out]) == sorted(everything)
    pooler = ("bert/pooler/dense/kernel",), ("albert.pooler.weight",), (48, 48)
    assert pooler in done.moved


def test_verification_finds_another_model(tmp_path):
    model = AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
    model.masked_lm_head.bias.assign_add(np.ones(120, "float32"))
    save_checkpoint(model, tmp_path, "huggingface")
    differences = verify_conversion(GOLDEN / "google_v2", tmp_path)
    assert len(differences) == 4 and differences["sequence_output"] < 1e-5
    assert differences["mlm_logits"] == pytest.approx(1.0, abs=1e-5)
