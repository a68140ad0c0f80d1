"""Batches of a fixed number of examples of similar length."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

# Training sorts by length only within windows of up to this many batches, and makes at
# least this many windows, so that batches stay nearly as random as after a shuffle.
MOST_SORTED_BATCHES = 64
LEAST_WINDOWS = 4


@dataclasses.dataclass(frozen=True)
class FixedSize:
    """Batches of `examples` each, the last one smaller; as `TokenBudget`."""

    examples: int

    def count(self, lengths: Any, shuffle: bool) -> int:
        """Return the number of batches."""
        return -(-len(lengths) // self.examples)

    def batches(self, lengths: Any, seed: tf.Tensor | None = None) -> tf.RaggedTensor:
        """Return the examples of each batch, int64 [batches, (examples)].

        Args:
            lengths: int array [examples], in tokens.
            seed: int tensor [] for a random order; without it from short to long.
        """
        count = len(lengths)
        splits = [*range(0, count, self.examples), count]
        if seed is None:
            order = np.argsort(lengths, kind="stable")
        else:
            order = shuffled_order(lengths, self.examples, seed)
        return tf.RaggedTensor.from_row_splits(order, splits, validate=False)


def shuffled_order(lengths: Any, batch_size: int, seed: tf.Tensor) -> tf.Tensor:
    """A new random order in which neighbours have like lengths.

    The examples are shuffled, sorted by length within windows of some batches and
    cut into batches, and the batches are shuffled. The last, smaller batch stays
    last. `lengths` are in tokens; the order depends on `seed`, an int tensor [].
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
