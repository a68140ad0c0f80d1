"""A training step on JAX and PyTorch where TensorFlow is not installed."""

import importlib.util

import pytest
from processes import WITHOUT_TENSORFLOW, run_python

SCRIPT = (
    WITHOUT_TENSORFLOW
    + """
import keras, numpy as np
import albert_tf
from albert_tf.backbone import AlbertBackbone

backbone = AlbertBackbone(
    vocabulary_size=120, num_layers=2, num_heads=4, embedding_dim=16, hidden_dim=48,
    intermediate_dim=96, max_sequence_length=32,
)
model = keras.Model(
    backbone.input, keras.layers.Dense(2)(backbone(backbone.input)["pooled_output"])
)
ids = np.random.default_rng(0).integers(120, size=(4, 17))
inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
before = backbone.token_embedding.get_weights()[0]
loss = model.fit(inputs, ids[:, 0] % 2, verbose=0).history["loss"][0]
assert np.isfinite(loss)
assert np.abs(backbone.token_embedding.get_weights()[0] - before).max() > 0
for name in albert_tf._FOLDERS:
    assert getattr(albert_tf, name).__all__
assert sys.modules["tensorflow"] is None
try:
    albert_tf.models
except ImportError as error:
    print(keras.backend.backend(), error)
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_training_step(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    output = run_python(SCRIPT, KERAS_BACKEND=backend)
    assert output.startswith(f"{backend} albert_tf.models needs TensorFlow")


FUSED = (
    WITHOUT_TENSORFLOW
    + """
import jax, keras, numpy as np
from albert_tf.backbone import AlbertBackbone
from albert_tf.layers import AttentionBlock

keras.utils.set_random_seed(1)
backbone = AlbertBackbone(
    vocabulary_size=120, num_layers=2, num_heads=4, embedding_dim=16, hidden_dim=48,
    intermediate_dim=96, max_sequence_length=32,
)
for weight in backbone.weights:
    weight.assign_add(keras.random.normal(weight.shape, stddev=0.3))
ids = np.random.default_rng(0).integers(120, size=(4, 17))
mask = np.arange(17) < np.array([[17], [5], [9], [1]])
inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask * 1}
states = [x.value for x in backbone.non_trainable_variables]

def loss(weights):
    outputs, _ = backbone.stateless_call(weights, states, inputs, training=True)
    x = outputs["sequence_output"] * mask[:, :, None]
    return (x**3).sum(), x

calls, original = [], keras.ops.dot_product_attention
keras.ops.dot_product_attention = lambda *x, **y: calls.append(1) or original(*x, **y)
found = []
for AttentionBlock.fuses_on_jax in (False, True):
    differentiated = jax.value_and_grad(loss, has_aux=True)
    (_, x), gradients = differentiated([x.value for x in backbone.trainable_variables])
    found.append([np.asarray(x), *map(np.asarray, gradients)])
    print(len(calls))
for x, y in zip(*found, strict=True):
    np.testing.assert_allclose(x, y, atol=2e-6 * np.abs(x).max())
"""
)


@pytest.mark.nightly
def test_fused_attention_has_the_same_values_and_gradients():
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    assert run_python(FUSED, KERAS_BACKEND="jax").split() == ["0", "2"]
