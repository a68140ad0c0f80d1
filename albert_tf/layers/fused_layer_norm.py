"""LayerNorm for inference with TensorFlow on a CPU, in one operation of oneDNN."""

import tensorflow as tf


def fused_layer_norm(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Normalize the last axis.

    TensorFlow computes LayerNorm in one pass only if it is written as Keras 2 did: a
    normalization of a batch with a channel per token, then gamma and beta. Statistics
    are float32, also those of 16-bit values.

    Args:
        x: a tensor [..., width] of two or three axes.
        gamma, beta: tensors [width] of the same type.
        epsilon: float, added to the variance.

    Returns:
        A tensor as `x`.

    Reference: `FindMklLayerNorm` in TensorFlow's grappler/optimizers/remapper.cc.
    """
    shape = tf.shape(x)
    tokens = tf.reduce_prod(shape[:-1])
    normalized = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x, [1, tokens, x.shape[-1], 1]),
        scale=tf.ones([tokens]),
        offset=tf.zeros([tokens]),
        mean=tf.constant([]),
        variance=tf.constant([]),
        epsilon=epsilon,
        data_format="NCHW",
        is_training=True,
    )
    return tf.reshape(normalized.y, shape) * gamma + beta
