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
