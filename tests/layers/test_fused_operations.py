"""Operations that a CPU computes at once: GELU and its gradient, LayerNorm."""

import collections
import functools
import platform

import keras
import numpy as np
import pytest
import tensorflow as tf
from checkpoint_files import GOLDEN, assert_near, backbone_inputs, expected
from keras import ops

import albert_tf
from albert_tf.layers import FeedForwardBlock
from albert_tf.layers.fused_gelu import fused_gelu
from albert_tf.layers.fused_layer_norm import fused_layer_norm


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


def run_graph(model, inputs, folder):
    """Return the outputs and the operations of the graph after TensorFlow's changes."""
    model.export(folder, verbose=False)
    v1, counts = tf.compat.v1, collections.Counter()
    with v1.Session(graph=tf.Graph()) as session:
        loaded = v1.saved_model.load(session, ["serve"], str(folder))
        signature = loaded.signature_def["serving_default"]
        options = v1.RunOptions(output_partition_graphs=True)
        metadata = v1.RunMetadata()
        outputs = session.run(
            {name: x.name for name, x in signature.outputs.items()},
            {signature.inputs[name].name: x for name, x in inputs.items()},
            options,
            metadata,
        )
    for graph in metadata.partition_graphs:
        counts.update(node.op for node in graph.node)
    return outputs, counts


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="oneDNN is for x86"
)
def test_the_graph_of_any_length_fuses_gelu_and_layer_norm(tmp_path):
    backbone = albert_tf.load_checkpoint(GOLDEN / "google_v2")
    arrays = expected("google_v2")
    outputs, counts = run_graph(backbone, backbone_inputs(arrays), tmp_path / "model")
    assert counts["_MklLayerNorm"] == 1 + 2 * backbone.num_layers
    # That of the pooler is fused with its product, too.
    assert not counts["Tanh"] + counts["FusedBatchNormV3"] + counts["Rsqrt"]
    for name, output in outputs.items():
        assert_near(output, arrays[name])


@pytest.mark.parametrize("deviation", [1e-5, 1.0, 1e4])
@pytest.mark.parametrize("dtype, rounding", [("float32", 1e-5), ("bfloat16", 2**-6)])
def test_layer_norm(deviation, dtype, rounding):
    random = np.random.default_rng(1)
    x = tf.cast(random.normal(0.5, 1, (3, 17, 48)) * deviation, dtype)
    gamma, beta = (tf.cast(random.normal(size=48), dtype) for _ in range(2))
    states = tf.TensorSpec([None, None, 48], dtype)
    vector = tf.TensorSpec([48], dtype)
    in_graph = tf.function(
        functools.partial(fused_layer_norm, epsilon=1e-12), [states, vector, vector]
    )
    y = in_graph(x, gamma, beta)
    assert y.dtype == dtype
    wide, gamma, beta = (np.asarray(tf.cast(z, "float64")) for z in (x, gamma, beta))
    variance = wide.var(-1, keepdims=True) + 1e-12
    normalized = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(variance)
    y = tf.cast(y, "float64")
    np.testing.assert_allclose(y, normalized * gamma + beta, rounding, rounding)


def test_gradients_of_an_inference():
    """Attributions need them, and TensorFlow has them of both forms."""
    block = FeedForwardBlock(96)
    x = keras.random.normal((3, 17, 48), seed=1)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = block(x, training=False)
        return tape.gradient(y, x, y)

    any_length = tf.function(gradient, [tf.TensorSpec([None, None, 48])])
    np.testing.assert_allclose(any_length(x), gradient(x), atol=1e-5)
