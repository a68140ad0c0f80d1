"""Golden checkpoints against the outputs of the original TensorFlow graphs."""

import keras
import numpy as np
import pytest
from checkpoint_files import (
    GOLDEN,
    LAYOUT_OF,
    NAMES,
    assert_golden,
    assert_golden_heads,
    assert_near,
    backbone_inputs,
    config_of,
    expected,
    weights_of,
)

from albert_tf.models import AlbertPretrainer

ATTENTION_PREFIX = {
    "albert_zh": "bert/encoder/layer_shared/attention/self",
    "google": "bert/encoder/transformer/group_0/inner_group_0/attention_1/self",
}


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return AlbertPretrainer.from_checkpoint(GOLDEN / name)


@pytest.fixture(scope="module")
def outputs(name, model):
    intermediates = model.backbone.with_intermediates(attention_scores=True)
    return intermediates(backbone_inputs(expected(name)))


def test_final_outputs_and_heads(name, model):
    assert_golden(model.backbone, name)
    assert_golden_heads(model, name)
    arrays, inputs = expected(name), model.backbone.input
    pooled = keras.Model(inputs, model.backbone.pool(inputs))
    assert_near(pooled(backbone_inputs(arrays)), arrays["pooled_output"])


def test_every_layer(name, outputs):
    arrays = expected(name)
    embedding = arrays["embedding_output"]
    if LAYOUT_OF[name] == "google":
        mapping = "bert/encoder/embedding_hidden_mapping_in"
        tensors = weights_of(name)
        embedding = (
            embedding @ tensors[f"{mapping}/kernel"] + tensors[f"{mapping}/bias"]
        )
    states = [embedding, *arrays["layers"]]
    for ours, theirs in zip(outputs["hidden_states"], states, strict=True):
        assert_near(ours, theirs)


def test_attention_scores(name, outputs):
    mask = expected(name)["input_mask"][:, None, None, :]
    assert mask.min() == 0
    for scores in outputs["attention_scores"]:
        assert scores.shape == (3, 4, 17, 17)
        assert np.abs(np.sum(scores * mask, axis=-1) - 1.0).max() < 1e-5
        assert np.max(scores * (1 - mask)) < 1e-12
    # The first layer's, computed from the tensors of the file.
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
    scores = np.exp(logits) * mask
    assert_near(outputs["attention_scores"][0], scores / scores.sum(-1, keepdims=True))
