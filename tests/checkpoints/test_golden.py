"""Golden checkpoints against the outputs of the original TensorFlow graphs."""

import keras
import pytest
from checkpoint_files import (
    GOLDEN,
    LAYOUT_OF,
    NAMES,
    assert_golden,
    assert_golden_heads,
    assert_near,
    backbone_inputs,
    expected,
    weights_of,
)

from albert_tf.models import AlbertPretrainer


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return AlbertPretrainer.from_checkpoint(GOLDEN / name)


@pytest.fixture(scope="module")
def outputs(name, model):
    intermediates = model.backbone.with_intermediates()
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
