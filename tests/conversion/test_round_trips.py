"""Golden checkpoints through every layout and back: the same bits, the same numbers."""

import keras_hub
import numpy as np
import pytest
from checkpoint_files import (
    GOLDEN,
    LAYOUT_OF,
    backbone_inputs,
    expected,
    read,
    weights_of,
)

import albert_tf
from albert_tf.conversion import convert_checkpoint, verify_conversion
from albert_tf.models import AlbertPretrainer

WAYS = [
    ("albert_zh_preln", "albert_zh"),
    ("albert_zh_preln", "keras"),
    ("google_v2", "google"),
    ("google_groups", "huggingface"),
    pytest.param("google_groups", "keras", marks=pytest.mark.slow),
    pytest.param("google_early", "huggingface", marks=pytest.mark.slow),
]
# What KerasHub can build: google_early has ReLU.
KERASHUB = ["google_v2", "google_groups"]


def log_softmax(x):
    x = np.asarray(x, "float64")
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def same_weights(one, other):
    for a, b in zip(one.weights, other.weights, strict=True):
        assert a.path == b.path
        assert np.array_equal(a.numpy(), b.numpy()), a.path


@pytest.mark.parametrize(("name", "layout"), WAYS)
def test_there_and_back_through_a_layout(tmp_path, name, layout):
    convert_checkpoint(GOLDEN / name, tmp_path / "there", layout)
    model = AlbertPretrainer.from_checkpoint(tmp_path / "there")
    same_weights(model, AlbertPretrainer.from_checkpoint(GOLDEN / name))
    arrays = expected(name)
    inputs = backbone_inputs(arrays)
    hidden = model.backbone.with_intermediates()(inputs)["hidden_states"][1:]
    for ours, theirs in zip(hidden, arrays["layers"], strict=True):
        assert np.abs(ours - theirs).max() < 1e-5
    heads = model({**inputs, "mask_positions": arrays["masked_lm_positions"]})
    words = log_softmax(heads["mlm_logits"]).reshape(arrays["mlm_log_probs"].shape)
    assert np.abs(words - arrays["mlm_log_probs"]).max() < 5e-5
    order = log_softmax(heads["sop_logits"]) - arrays["sop_log_probs"]
    assert np.abs(order).max() < 5e-5
    convert_checkpoint(tmp_path / "there", tmp_path / "back", LAYOUT_OF[name])
    tensors = read(tmp_path / "back" / "albert_model.ckpt")
    original = weights_of(name)
    assert tensors.keys() == original.keys()
    for tensor, values in original.items():
        assert np.array_equal(tensors[tensor], values), tensor


@pytest.mark.parametrize("name", KERASHUB)
def test_through_keras_hub(tmp_path, name):
    convert_checkpoint(GOLDEN / name, tmp_path / "there", "kerashub")
    backbone = albert_tf.load_checkpoint(tmp_path / "there")
    same_weights(backbone, albert_tf.load_checkpoint(GOLDEN / name))
    theirs = keras_hub.models.AlbertBackbone.from_preset(str(tmp_path / "there"))
    arrays = expected(name)
    outputs = theirs(backbone_inputs(arrays))
    for output in ("sequence_output", "pooled_output"):
        assert np.abs(outputs[output] - arrays[output]).max() < 1e-5


@pytest.mark.slow
def test_a_chain_through_all(tmp_path):
    previous = GOLDEN / "google_groups"
    for layout in ("huggingface", "keras", "google", "huggingface", "google"):
        folder = tmp_path / f"{layout}_{len(list(tmp_path.iterdir()))}"
        convert_checkpoint(previous, folder, layout)
        previous = folder
    for tensor, values in weights_of("google_groups").items():
        assert np.array_equal(read(previous / "albert_model.ckpt")[tensor], values)


def test_a_keras_file_is_a_checkpoint(tmp_path):
    model = AlbertPretrainer.from_checkpoint(GOLDEN / "albert_zh_preln")
    model.save(tmp_path / "model.keras")
    same_weights(model, AlbertPretrainer.from_checkpoint(tmp_path / "model.keras"))
    backbone = albert_tf.load_checkpoint(tmp_path / "model.keras")
    same_weights(model.backbone, backbone)


def test_a_model_in_memory_is_a_checkpoint():
    model = AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
    again = albert_tf.load_checkpoint(model)
    same_weights(model.backbone, again)
    assert again is not model.backbone


def test_what_is_moved_and_left_out_is_told(tmp_path):
    seen = []
    done = convert_checkpoint(
        GOLDEN / "google_v2",
        tmp_path / "hf",
        "huggingface",
        progress=lambda read, total: seen.append((read, total)),
    )
    assert done.layout == "google"
    assert seen == [(i, len(done.moved)) for i in range(1, len(done.moved) + 1)]
    read_names = [name for names, _, _ in done.moved for name in names]
    assert sorted(read_names) == sorted(weights_of("google_v2"))
    everything = read(GOLDEN / "google_v2" / "model.ckpt-best")
    assert sorted([*read_names, *done.left_out]) == sorted(everything)
    (pooler,) = (x for x in done.moved if x[1] == ("albert.pooler.weight",))
    assert pooler == (
        ("bert/pooler/dense/kernel",),
        ("albert.pooler.weight",),
        (48, 48),
    )


@pytest.mark.parametrize(
    ("name", "layout", "outputs"),
    [
        ("google_groups", "huggingface", 4),
        ("google_groups", "kerashub", 2),
    ],
)
def test_verify(tmp_path, name, layout, outputs):
    convert_checkpoint(GOLDEN / name, tmp_path / "there", layout)
    differences = verify_conversion(GOLDEN / name, tmp_path / "there")
    assert len(differences) == outputs
    assert max(differences.values()) < 1e-5


def test_verify_sees_another_model(tmp_path):
    model = AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
    model.masked_lm_head.bias.assign_add(np.ones(120, "float32"))
    albert_tf.save_checkpoint(model, tmp_path / "changed", "huggingface")
    differences = verify_conversion(GOLDEN / "google_v2", tmp_path / "changed")
    assert differences["sequence_output"] == 0.0
    assert differences["mlm_logits"] == pytest.approx(1.0, abs=1e-5)
