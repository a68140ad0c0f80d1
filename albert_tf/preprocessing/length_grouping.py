"""Batches of examples of similar length: of a fixed size or of a number of tokens."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import SegmentPacker

# Training sorts by length only within windows of up to 64 batches, at least four of
# them, so that batches stay nearly as random as after a shuffle.
MOST_SORTED_BATCHES = 64
LEAST_WINDOWS = 4
# A token budget deals examples into up to four parts of eight or more batches.
MOST_PARTS = 4
LEAST_BATCHES = 8


@dataclasses.dataclass(frozen=True)
class FixedSize:
    """Batches of `examples` each, the last one smaller; used like `TokenBudget`."""

    examples: int

    def count(self, lengths: Any, shuffle: bool) -> int:
        """Return the number of batches."""
        return -(-len(lengths) // self.examples)

    def batches(self, lengths: Any, seed: tf.Tensor | None = None) -> tf.RaggedTensor:
        """Return the examples of each batch, int64 [batches, (examples)].

        The order is random for a `seed`, an int tensor []; else from short to long.
        """
        count = len(lengths)
        splits = [*range(0, count, self.examples), count]
        if seed is None:
            order = np.argsort(lengths, kind="stable")
        else:
            order = shuffled_order(lengths, self.examples, seed)
        return tf.RaggedTensor.from_row_splits(order, splits, validate=False)


def shuffled_order(lengths: Any, batch_size: int, seed: tf.Tensor) -> tf.Tensor:
    """Return a random order in which neighbours have similar lengths, int64 [examples].

    Examples are shuffled, sorted by length within windows and cut into batches, which
    are shuffled. The last, smaller batch stays last. The order depends on `seed` alone.
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


@dataclasses.dataclass(frozen=True)
class TokenBudget:
    """Batches of as many examples as fit in a number of tokens, padding included.

    Each batch takes about as much work and memory. An example with more tokens is alone
    in its batch. Past `enough` tokens, close a batch rather than pad it further.
    """

    tokens: int
    packer: SegmentPacker
    enough: int | None = None

    def shared_by(self, texts: int) -> "TokenBudget":
        """Return the budget of each text if an example has several."""
        return dataclasses.replace(self, tokens=self.tokens // max(texts, 1))

    def batch_size(self, length: int) -> int:
        """Return the number of examples of this length per batch."""
        return max(self.tokens // int(self.packer.padded_lengths(length)), 1)

    def cut(self, lengths: Any) -> np.ndarray:
        """Return the bounds [batches + 1] of batches of examples, sorted by length."""
        bounds, last = [0], 0
        for row, length in enumerate(self.packer.padded_lengths(lengths)):
            count = row - bounds[-1]
            is_full = (count + 1) * length > self.tokens
            if self.enough and length > last:
                is_full = is_full or count * last >= self.enough
            if count and is_full:
                bounds.append(row)
            last = length
        return np.array([*bounds, len(lengths)])

    def count(self, lengths: Any, shuffle: bool) -> int:
        """Return the number of batches."""
        by_length = np.sort(np.asarray(lengths))
        parts, bounds = self._parts(by_length) if shuffle else (1, self.cut(by_length))
        return parts * (len(bounds) - 1)

    def batches(self, lengths: Any, seed: tf.Tensor | None = None) -> tf.RaggedTensor:
        """Return the examples of each batch; see `FixedSize.batches`."""
        lengths = np.asarray(lengths)
        if seed is None:
            order = np.argsort(lengths, kind="stable")
            return tf.RaggedTensor.from_row_splits(order, self.cut(lengths[order]))
        padded = self.packer.padded_lengths(lengths)
        parts, bounds = self._parts(np.sort(padded))
        shuffle = tf.random.experimental.stateless_shuffle
        order = shuffle(tf.range(len(lengths), dtype=tf.int64), [seed, 0])
        order = tf.gather(order, tf.argsort(tf.gather(padded, order), stable=True))
        # [places, parts]: of neighbours in length, one for each part.
        order = tf.pad(order, [[-len(lengths) % parts, 0]], constant_values=-1)
        places = tf.reshape(order, [-1, parts])
        draw = tf.random.stateless_uniform(tf.shape(places), [seed, 1])
        places = tf.gather(places, tf.argsort(draw), batch_dims=1)
        splits = (np.arange(parts)[:, None] * bounds[-1] + bounds[:-1]).reshape(-1)
        batches = tf.RaggedTensor.from_row_splits(
            tf.reshape(tf.transpose(places), [-1]), [*splits, parts * bounds[-1]]
        )
        batches = tf.gather(batches, shuffle(tf.range(len(splits)), [seed, 2]))
        return tf.ragged.boolean_mask(batches, batches >= 0)

    def _parts(self, by_length):
        """Return the number of parts and the bounds of the batches in each.

        Dealing examples into parts gives them other companions in each epoch, also
        where few have about one length. Each part is cut as if it got the longest of
        neighbours, so that the number of batches, and so of steps, is constant.
        """
        bounds = self.cut(by_length)
        parts = int(np.clip((len(bounds) - 1) // LEAST_BATCHES, 1, MOST_PARTS))
        # A batch of one example must not lose it to the padding of places.
        if bounds[1] == 1:
            parts = 1
        return parts, self.cut(by_length[::-1][::parts][::-1])
