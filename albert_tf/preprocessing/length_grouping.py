"""Batches of examples of like length, so that next to nothing is padded."""

import numpy as np
import tensorflow as tf

# Training sorts by length only within this many batches, so that which examples
# meet in a batch stays nearly as random as after a plain shuffle.
SORTED_BATCHES = 64


def length_order(lengths):
    """The examples from short to long.

    Args:
        lengths: int array [examples], in tokens.

    Returns:
        An int array [examples] of positions.
    """
    return np.argsort(np.asarray(lengths), kind="stable")


def shuffled_order(lengths, batch_size):
    """A new random order in which neighbours have like lengths.

    The examples are shuffled, sorted by length within windows of
    `SORTED_BATCHES` batches and cut into batches, and the batches are shuffled.
    The last, smaller batch stays last.

    Args:
        lengths: int tensor [examples], in tokens.
        batch_size: int.

    Returns:
        An int tensor [examples] of positions.
    """
    lengths = tf.cast(lengths, tf.int64)
    count = tf.size(lengths, tf.int64)
    order = tf.random.shuffle(tf.range(count))
    window = tf.range(count) // (SORTED_BATCHES * batch_size)
    key = window * (tf.reduce_max(lengths) + 1) + tf.gather(lengths, order)
    order = tf.gather(order, tf.argsort(key, stable=True))
    whole = count // batch_size * batch_size
    batches = tf.random.shuffle(tf.reshape(order[:whole], [-1, batch_size]))
    # The short batch is any of the lengths, rather than always the longest.
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

    def one_epoch(_):
        order = shuffled_order(lengths, batch_size) if shuffle else fixed
        return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

    def gather(rows):
        return pad(*(tf.gather(feature, rows) for feature in features))

    return (
        tf.data.Dataset.range(1)
        .flat_map(one_epoch)
        .map(gather, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(batches))
        .prefetch(tf.data.AUTOTUNE)
    )
