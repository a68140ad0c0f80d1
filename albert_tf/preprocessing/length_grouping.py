"""Batches of examples of like length, so that next to nothing is padded."""

import numpy as np
import tensorflow as tf

# Training sorts by length only within windows of so many batches, and there are at
# least so many windows, so that which examples meet in a batch stays nearly as random
# as after a plain shuffle.
MOST_SORTED_BATCHES = 64
LEAST_WINDOWS = 4


def length_order(lengths):
    """The examples from short to long.

    Args:
        lengths: int array [examples], in tokens.

    Returns:
        An int array [examples] of positions.
    """
    return np.argsort(np.asarray(lengths), kind="stable")


def shuffled_order(lengths, batch_size, seed):
    """A new random order in which neighbours have like lengths.

    The examples are shuffled, sorted by length within windows of some batches and
    cut into batches, and the batches are shuffled. The last, smaller batch stays
    last.

    Args:
        lengths: int tensor [examples], in tokens.
        batch_size: int.
        seed: int tensor [], what the order depends on.

    Returns:
        An int tensor [examples] of positions.
    """
    shuffle = tf.random.experimental.stateless_shuffle
    lengths = tf.cast(lengths, tf.int64)
    count = tf.size(lengths, tf.int64)
    order = shuffle(tf.range(count), [seed, 0])
    batches_in_window = tf.clip_by_value(
        count // batch_size // LEAST_WINDOWS, 2, MOST_SORTED_BATCHES
    )
    window = tf.range(count) // (batches_in_window * batch_size)
    key = window * (tf.reduce_max(lengths) + 1) + tf.gather(lengths, order)
    order = tf.gather(order, tf.argsort(key, stable=True))
    whole = count // batch_size * batch_size
    batches = shuffle(tf.reshape(order[:whole], [-1, batch_size]), [seed, 1])
    return tf.concat([tf.reshape(batches, [-1]), order[whole:]], axis=0)


def grouped_dataset(features, lengths, pad, batch_size, shuffle):
    """A dataset of padded batches of like length.

    Args:
        features: tuple of (ragged) tensors [examples, ...]: what `pad` takes.
        lengths: int array [examples], in tokens.
        pad: function of a batch of `features`, which gives the batch for Keras.
        batch_size: int.
        shuffle: bool. A new random order each epoch; else from short to long.

    Returns:
        A `tf.data.Dataset` that knows its number of batches.
    """
    lengths = np.asarray(lengths)
    batches = -(-len(lengths) // batch_size)
    fixed = tf.constant(length_order(lengths), tf.int64)

    def one_epoch(seed):
        order = shuffled_order(lengths, batch_size, seed) if shuffle else fixed
        return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

    def gather(rows):
        return pad(*(tf.gather(feature, rows) for feature in features))

    # Random operations inside a dataset begin anew with each epoch when a global
    # seed is set, and would give every epoch the same order.
    return (
        tf.data.Dataset.random(rerandomize_each_iteration=True)
        .take(1)
        .flat_map(one_epoch)
        .map(gather, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(batches))
        .prefetch(tf.data.AUTOTUNE)
    )
