"""Against the outputs of the original TensorFlow graphs."""

import keras
import numpy as np
import pytest
from checkpoint_files import (
    GOLDEN,
    LAYOUT_OF,
    NAMES,
    backbone_inputs,
    config_of,
    expected,
    weights_of,
)

import albert_tf
from albert_tf.models import AlbertPretrainer

ATTENTION_PREFIX = {
    "albert_zh": "bert/encoder/layer_shared/attention/self",
    "google": "bert/encoder/transformer/group_0/inner_group_0/attention_1/self",
}


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def backbone(name):
    return albert_tf.load_checkpoint(GOLDEN / name)


@pytest.fixture(scope="module")
def outputs(name, backbone):
    model = backbone.with_intermediates(attention_scores=True)
    return model(backbone_inputs(expected(name)))


@pytest.fixture(scope="module")
def pretrained(name):
    arrays = expected(name)
    model = AlbertPretrainer.from_checkpoint(GOLDEN / name)
    inputs = backbone_inputs(arrays)
    return model({**inputs, "mask_positions": arrays["masked_lm_positions"]})


def largest_difference(a, b):
    assert tuple(a.shape) == tuple(b.shape)
    return np.abs(np.asarray(a) - np.asarray(b)).max()


def log_softmax(x):
    x = np.asarray(x, "float64")
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_every_output(name, backbone, outputs):
    arrays = expected(name)
    layers, embedding = arrays["layers"], arrays["embedding_output"]
    if LAYOUT_OF[name] == "google":
        mapping = "bert/encoder/embedding_hidden_mapping_in"
        tensors = weights_of(name)
        embedding = (
            embedding @ tensors[f"{mapping}/kernel"] + tensors[f"{mapping}/bias"]
        )
    assert largest_difference(outputs["hidden_states"][0], embedding) < 1e-5
    assert len(outputs["hidden_states"]) == len(layers) + 1
    for ours, theirs in zip(outputs["hidden_states"][1:], layers, strict=True):
        assert largest_difference(ours, theirs) < 1e-5
    plain = backbone(backbone_inputs(arrays))
    for output in ("sequence_output", "pooled_output"):
        assert largest_difference(outputs[output], arrays[output]) < 1e-5
        assert largest_difference(plain[output], arrays[output]) < 1e-5
    model = keras.Model(backbone.input, backbone.pool(backbone.input))
    pooled = model(backbone_inputs(arrays))
    assert largest_difference(pooled, arrays["pooled_output"]) < 1e-5


def test_both_heads(name, pretrained):
    log_probabilities = log_softmax(pretrained["mlm_logits"])
    theirs = expected(name)["mlm_log_probs"].reshape(log_probabilities.shape)
    assert largest_difference(log_probabilities, theirs) < 5e-5
    log_probabilities = log_softmax(pretrained["sop_logits"])
    assert largest_difference(log_probabilities, expected(name)["sop_log_probs"]) < 5e-5


def test_attention(name, outputs):
    mask = expected(name)["input_mask"][:, None, None, :]
    assert mask.min() == 0
    for scores in outputs["attention_scores"]:
        assert scores.shape == (3, 4, 17, 17)
        assert np.abs(np.sum(scores * mask, axis=-1) - 1.0).max() < 1e-5
        assert np.max(scores * (1 - mask)) < 1e-12
    # The first layer's, by hand.
    tensors = weights_of(name)
    prefix = ATTENTION_PREFIX[LAYOUT_OF[name]]
    x = np.asarray(outputs["hidden_states"][0], "float64")
    if config_of(name).get("ln_type") == "preln":
        norm = "bert/encoder/layer_shared/attention/output/LayerNorm"
        x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        x = x * tensors[f"{norm}/gamma"] + tensors[f"{norm}/beta"]
    query, key = (
        x @ tensors[f"{prefix}/{part}/kernel"] + tensors[f"{prefix}/{part}/bias"]
        for part in ("query", "key")
    )
    query, key = (y.reshape(3, 17, 4, 12) for y in (query, key))
    logits = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(12)
    mask = expected(name)["input_mask"][:, None, None, :]
    scores = np.exp(logits) * mask
    scores /= scores.sum(-1, keepdims=True)
    assert np.abs(outputs["attention_scores"][0] - scores).max() < 1e-5
