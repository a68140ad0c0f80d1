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


@pytest.mark.parametrize("name", NAMES)
def test_outputs_of_the_heads_and_of_every_layer(name):
    model, arrays = AlbertPretrainer.from_checkpoint(GOLDEN / name), expected(name)
    assert_golden(model.backbone, name)
    assert_golden_heads(model, name)
    inputs = backbone_inputs(arrays)
    pool = keras.Model(model.backbone.input, model.backbone.pool(model.backbone.input))
    assert_near(pool(inputs), arrays["pooled_output"])
    embedding = arrays["embedding_output"]
    if LAYOUT_OF[name] == "google":
        mapping = "bert/encoder/embedding_hidden_mapping_in"
        kernel, bias = (weights_of(name)[f"{mapping}/{x}"] for x in ("kernel", "bias"))
        embedding = embedding @ kernel + bias
    states = model.backbone.with_intermediates()(inputs)["hidden_states"]
    for ours, theirs in zip(states, [embedding, *arrays["layers"]], strict=True):
        assert_near(ours, theirs)
