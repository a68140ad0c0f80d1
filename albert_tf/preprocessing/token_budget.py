"""Batches of as many examples as fit in a number of tokens."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf_lite.errors import AlbertError

# Shuffled examples are dealt into so many parts, of so many batches at least.
MOST_WINDOWS = 4
LEAST_BATCHES = 8


@dataclasses.dataclass(frozen=True)
class TokenBudget:
    """How many examples a batch has, by their length, in place of a fixed number.

    Short texts come many at a time and long ones few, so that every batch is about as
    much work and takes as much memory.

    Args:
        tokens: int. Most tokens of a batch, padding included. An example that has more
            is a batch of its own.
        packer: the `SegmentPacker` that pads the batches.
        enough: optional int. A batch of so many tokens ends where the next example
            would have it padded to more.
    """

    tokens: int
    packer: SegmentPacker
    enough: int | None = None

    def shared_by(self, texts: int) -> TokenBudget:
        """The budget for each of the texts where an example has several."""
        return dataclasses.replace(self, tokens=self.tokens // max(texts, 1))

    def batch_size(self, length: int) -> int:
        """How many examples of so many tokens a batch has."""
        return max(self.tokens // int(self.packer.padded_lengths(length)), 1)

    def cut(self, lengths: Any) -> np.ndarray:
        """Where batches of examples begin and end, an int array [batches + 1].

        `lengths` are the tokens of the examples, from short to long.
        """
        ends, last = [0], 0
        for row, length in enumerate(self.packer.padded_lengths(lengths)):
            count = row - ends[-1]
            is_full = (count + 1) * length > self.tokens
            if self.enough and length > last:
                is_full = is_full or count * last >= self.enough
            if count and is_full:
                ends.append(row)
            last = length
        return np.array([*ends, len(lengths)])

    def count(self, lengths: Any, shuffle: bool) -> int:
        """How many batches examples [examples] of these lengths are."""
        by_length = np.sort(np.asarray(lengths))
        windows, ends = (
            self._windows(by_length) if shuffle else (1, self.cut(by_length))
        )
        return windows * (len(ends) - 1)

    def batches(self, lengths: Any, seed: tf.Tensor | None = None) -> tf.RaggedTensor:
        """The examples of each batch, int64 [batches, (examples)].

        Args:
            lengths: int array [examples], in tokens.
            seed: int tensor [], for batches that are drawn anew, in a random order;
                without it they go from short to long.
        """
        lengths = np.asarray(lengths)
        if seed is None:
            order = np.argsort(lengths, kind="stable")
            return tf.RaggedTensor.from_row_splits(order, self.cut(lengths[order]))
        padded = self.packer.padded_lengths(lengths)
        windows, ends = self._windows(np.sort(padded))
        shuffle = tf.random.experimental.stateless_shuffle
        order = shuffle(tf.range(len(lengths), dtype=tf.int64), [seed, 0])
        by_length = tf.argsort(tf.gather(padded, order), stable=True)
        # [places, windows]: neighbours in length, one for each window.
        filled = tf.pad(
            tf.gather(order, by_length),
            [[-len(lengths) % windows, 0]],
            constant_values=-1,
        )
        places = tf.reshape(filled, [-1, windows])
        draw = tf.random.stateless_uniform(tf.shape(places), [seed, 1])
        places = tf.gather(places, tf.argsort(draw), batch_dims=1)
        splits = (np.arange(windows)[:, None] * ends[-1] + ends[:-1]).reshape(-1)
        batches = tf.RaggedTensor.from_row_splits(
            tf.reshape(tf.transpose(places), [-1]), [*splits, windows * ends[-1]]
        )
        batches = tf.gather(batches, shuffle(tf.range(len(splits)), [seed, 2]))
        return tf.ragged.boolean_mask(batches, batches >= 0)

    def _windows(self, by_length):
        """Into how many parts the examples are dealt, and where their batches end.

        So that others meet in each epoch, also where few examples have about one
        length. A part is cut as if it always got the longest of its neighbours, so
        that each epoch has as many batches, and a learning rate its steps.
        """
        ends = self.cut(by_length)
        windows = int(np.clip((len(ends) - 1) // LEAST_BATCHES, 1, MOST_WINDOWS))
        # Where a batch is one example, none may be missing.
        if ends[1] == 1:
            windows = 1
        return windows, self.cut(by_length[::-1][::windows][::-1])


def check_budget(batch_size: Any, max_tokens: int, has_texts: bool) -> None:
    """Refuse a budget that is none, or beside `batch_size`, or of no texts."""
    if batch_size is not None:
        raise AlbertError(
            "`batch_size` counts the examples of a batch and `max_tokens` their "
            f"tokens: give one of them. Received: batch_size={batch_size}, "
            f"max_tokens={max_tokens}"
        )
    if max_tokens < 1:
        raise AlbertError(f"`max_tokens` should be 1 at least. Received: {max_tokens}")
    if not has_texts:
        raise AlbertError(
            "`max_tokens` makes batches of texts. Give them as lists, or `fit` a "
            "dataset of strings with `group_by_length=True`."
        )
