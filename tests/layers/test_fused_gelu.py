"""GELU of a training step: its values and its gradient."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from albert_tf.layers import FeedForwardBlock
from albert_tf.layers.fused_gelu import fused_gelu


def reference(x):
    """Return GELU and its slope, as in the paper (arXiv 1606.08415), section 2."""
    scale, cubic = np.sqrt(2 / np.pi), 0.044715
    with np.errstate(over="ignore"):
        tanh = np.tanh(scale * (x + cubic * x**3))
    inner = scale * (1 + 3 * cubic * x**2)
    return 0.5 * x * (1 + tanh), 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * inner


@pytest.mark.parametrize(
    "dtype, rounding", [("float64", 1e-12), ("float32", 1e-6), ("bfloat16", 2**-8)]
)
def test_values_and_gradient(dtype, rounding):
    # Also where the cube of a 16-bit value would overflow.
    x = tf.concat([tf.linspace(-9.0, 9.0, 1701), [-1e4, 0.0, 1e4]], 0)
    x = tf.cast(x, dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fused_gelu(x)
    expected = reference(np.asarray(tf.cast(x, "float64")))
    for found, value in zip((y, tape.gradient(y, x)), expected, strict=True):
        assert found.dtype == dtype
        found = tf.cast(found, "float64")
        np.testing.assert_allclose(found, value, rtol=rounding, atol=rounding)


@pytest.mark.traced
def test_a_block_trains_with_the_outputs_of_its_inference():
    block = FeedForwardBlock(96)
    x = keras.random.normal((3, 17, 48), seed=1)
    with tf.GradientTape() as tape:
        trained = tf.function(block)(x, training=True)
    assert tape.gradient(trained, block.trainable_variables)[0] is not None
    np.testing.assert_allclose(trained, block(x), atol=1e-6)
    # Lengths of other batches.
    assert ops.shape(block(x[:, :5], training=True)) == (3, 5, 48)
