"""Muon against the singular values of NumPy."""

import keras
import numpy as np
import pytest

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.training import Muon

RATE, MOMENTUM, RMS = 0.5, 0.95, 0.2


def variable(path, value):
    scope, name = path.split("/")
    with keras.name_scope(scope):
        return keras.Variable(np.asarray(value, "float32"), name=name)


# Newton-Schulz brings each singular value near 1, and turns no singular vector.
@pytest.mark.parametrize(
    ("path", "shape", "parts"),
    [
        ("dense/kernel", (5, 9), 1),
        ("dense/kernel", (9, 5), 1),
        ("query_key_value/kernel", (6, 18), 3),
    ],
)
def test_a_step_is_the_momentum_made_orthogonal(path, shape, parts):
    rng = np.random.default_rng(4)
    w = variable(path, np.zeros(shape))
    optimizer = Muon(RATE, weight_decay=None)
    momentum = 0.0
    for _ in range(3):
        before = w.numpy()
        gradient = rng.normal(size=shape)
        optimizer.apply([keras.ops.array(gradient, "float32")], [w])
        momentum = MOMENTUM * momentum + gradient
        step = (before - w.numpy()) / RATE
        nesterov = gradient + MOMENTUM * momentum
        for ours, matrix in zip(
            np.split(step, parts, axis=1),
            np.split(nesterov, parts, axis=1),
            strict=True,
        ):
            scale = RMS * max(matrix.shape) ** 0.5
            left, values, right = np.linalg.svd(matrix, full_matrices=False)
            found = left.T @ ours @ right.T / scale
            # Of a square matrix the smallest may not get there in five iterations.
            large = values > 0.05 * np.linalg.norm(matrix)
            assert np.all(np.abs(np.diag(found)[large] - 1) < 0.4)
            np.testing.assert_allclose(found - np.diag(np.diag(found)), 0, atol=1e-4)


def test_embeddings_vectors_and_the_order_are_adams_and_matrices_decay():
    backbone = AlbertBackbone(20, 2, 4, 8, 12, 24, max_sequence_length=17)
    variables = AlbertPretrainer(backbone).trainable_variables
    for x in variables:
        x.assign(keras.ops.ones(x.shape))
    optimizer = Muon(0.125, weight_decay=1.0)
    optimizer.apply([keras.ops.zeros(x.shape) for x in variables], variables)
    adams = {
        x.path
        for x, velocity in zip(variables, optimizer.adam_velocities, strict=True)
        if velocity is not None
    }
    for x in variables:
        vector = x.path.endswith(("bias", "gamma", "beta"))
        assert np.unique(x.numpy()) == pytest.approx(1.0 if vector else 0.875), x.path
        others = vector or "embedding" in x.path or "sop_logits" in x.path
        assert (x.path in adams) == others, x.path


def test_config_comes_back():
    optimizer = Muon(0.5, weight_decay=0.2, momentum=0.9, global_clipnorm=1.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is Muon and again.get_config() == optimizer.get_config()
