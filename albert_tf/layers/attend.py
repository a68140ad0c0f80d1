"""Attention for training with TensorFlow on a CPU, by example if texts are long."""

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
    takes as long and saves the memory of those of a batch. A second gradient, such as
    that of a gradient penalty, takes the memory of all scores.

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
    return _attend(query, key, value, blocked)


# TensorFlow differentiates neither the gradient of a condition nor that of a loop, so
# the gradients are written down, each with a gradient of its own.


@tf.custom_gradient
def _attend(query, key, value, blocked):
    inputs = query, key, value, blocked

    def attend_by_example():
        means = _by_example(lambda x: _attend_at_once(*x)[0], inputs, query.dtype)
        # The probabilities are not kept: `_gradients` computes them again.
        return means, tf.zeros([0, 0, 0, 0], query.dtype)

    means, probabilities = tf.cond(
        _is_short(key), lambda: _attend_at_once(*inputs), attend_by_example
    )
    means = tf.ensure_shape(means, query.shape)

    def gradients(upstream):
        of_query, of_key, of_value = _gradients(
            *inputs,
            # Only the inputs have gradients.
            tf.stop_gradient(means),
            tf.stop_gradient(probabilities),
            upstream,
        )
        return of_query, of_key, of_value, tf.zeros_like(blocked)

    return means, gradients


@tf.custom_gradient
def _gradients(query, key, value, blocked, means, probabilities, upstream):
    """Return the gradients of query, key and value."""
    inputs = query, key, value, blocked, means
    first = tf.cond(
        _is_short(key),
        lambda: _gradients_at_once(query, key, value, means, probabilities, upstream),
        lambda: _by_example(
            lambda x: _gradients_again(*x),
            (*inputs, upstream),
            (query.dtype, key.dtype, value.dtype),
        ),
    )
    of_query, of_key, of_value = map(
        tf.ensure_shape, first, (query.shape, key.shape, value.shape)
    )

    def second_gradients(*upstreams):
        sources = query, key, value, upstream
        with tf.GradientTape() as tape:
            tape.watch(sources)
            again, weights = _attend_at_once(query, key, value, blocked)
            plain = _gradients_at_once(query, key, value, again, weights, upstream)
        seconds = tape.gradient(plain, sources, output_gradients=upstreams)
        of_query, of_key, of_value, of_upstream = seconds
        others = map(tf.zeros_like, (blocked, means, probabilities))
        return of_query, of_key, of_value, *others, of_upstream

    return (of_query, of_key, of_value), second_gradients


def _is_short(key):
    return tf.shape(key)[2] < LONG


def _by_example(function, inputs, dtypes):
    return tf.map_fn(
        function,
        inputs,
        parallel_iterations=_EXAMPLES_AT_ONCE,
        fn_output_signature=dtypes,
    )


def _attend_at_once(query, key, value, blocked):
    """Return the weighted mean of the values, and the weights."""
    probabilities = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + blocked)
    return tf.matmul(probabilities, value), probabilities


def _gradients_again(query, key, value, blocked, means, upstream):
    """Return the gradients of query, key and value, whose weights were not kept."""
    _, probabilities = _attend_at_once(query, key, value, blocked)
    return _gradients_at_once(query, key, value, means, probabilities, upstream)


def _gradients_at_once(query, key, value, means, probabilities, upstream):
    """Return the gradients of query, key and value."""
    # The sum of the products of the probabilities and their gradients.
    wide = wide_type(query.dtype)
    products = tf.cast(upstream, wide) * tf.cast(means, wide)
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
