"""What batches with masks have in common, read from records or made of texts."""

import math

import tensorflow as tf

# What predictions are rounded up to: each shape is compiled on JAX.
PREDICTIONS_STEP = 8


def most_predictions(sequence_length, rate):
    """Most predictions of a sequence: a quarter more than the rate of its tokens."""
    # Another rate is refused by the generator of masks.
    share = rate if 0 < rate < 1 else 0.0
    return math.ceil(1.25 * share * sequence_length)


def trimmed(batch, mask, step, names):
    """The batch without the last columns of `names` in which no `mask` is set."""
    used = tf.reduce_max(tf.reduce_sum(tf.cast(batch[mask], tf.int32), axis=1))
    columns = tf.maximum((used + step - 1) // step, 1) * step
    return {
        name: values[:, :columns] if name in names else values
        for name, values in batch.items()
    }


def with_mean_one(weights):
    """Weights with which Keras' mean over all places is that over the predictions.

    Not left to the loss: devices that share a batch have more and fewer of them.
    """
    return weights / tf.maximum(tf.reduce_mean(weights), 1e-6)
