"""Attention for training with TensorFlow on a CPU, by example if texts are long."""

import functools

import tensorflow as tf

from albert_tf.layers.fused_gelu import wide_type

# Tokens. The scores of a batch then take more memory than all else.
LONG = 160
_EXAMPLES_AT_ONCE = 2


def attend(
    query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, blocked: tf.Tensor | None
) -> tf.Tensor:
    """Return the mean of the values, weighted by the softmax of the scores.

    For long texts the scores are computed by example, and again for the gradient, which
    takes as long and saves the memory of those of a batch.

    Args:
        query: a tensor [batch, heads, queries, head_dim], which is scaled.
        key, value: tensors [batch, heads, time, head_dim].
        blocked: optional tensor [batch, 1, 1 or queries, time], added to the scores. It
            has no gradient.

    Returns:
        A tensor as the query.

    Reference: section 3 of [Rabe and Staats](https://arxiv.org/abs/2112.05682).
    """
    if blocked is None:
        blocked = tf.zeros_like(query[:, :1, :1, :1])
    return tf.cond(
        tf.shape(key)[2] < LONG,
        lambda: _attend(query, key, value, blocked),
        lambda: _attend_by_example(query, key, value, blocked),
    )


def _attend(query, key, value, blocked):
    return tf.matmul(_probabilities(query, key, blocked), value)


def _probabilities(query, key, blocked):
    return tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + blocked)


@tf.custom_gradient
def _attend_by_example(query, key, value, blocked):
    by_example = functools.partial(tf.map_fn, parallel_iterations=_EXAMPLES_AT_ONCE)
    inputs = query, key, value, blocked
    found = by_example(lambda x: _attend(*x), inputs, fn_output_signature=query.dtype)

    def gradients(upstream):
        of_inputs = by_example(
            lambda x: _gradients(*x),
            (*inputs, found, upstream),
            fn_output_signature=(query.dtype,) * 3,
        )
        return *of_inputs, tf.zeros_like(blocked)

    return found, gradients


def _gradients(query, key, value, blocked, found, upstream):
    """Return the gradients of query, key and value."""
    probabilities = _probabilities(query, key, blocked)
    # The sum of the products of the probabilities and their gradients.
    wide = wide_type(query.dtype)
    products = tf.cast(upstream, wide) * tf.cast(found, wide)
    total = tf.cast(tf.reduce_sum(products, axis=-1, keepdims=True), query.dtype)
    scores = tf.matmul(upstream, value, transpose_b=True) - total
    scores *= probabilities
    return (
        tf.matmul(scores, key),
        _transposed_product(scores, query),
        _transposed_product(probabilities, upstream),
    )


def _transposed_product(large, small):
    """Return the product of a transposed matrix, without transposing the large one."""
    transpose = tf.linalg.matrix_transpose
    return transpose(tf.matmul(transpose(small), large))
