"""Texts longer than a model's positions, in windows that overlap."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Windows:
    """The windows of a batch of texts, those of one text one after the other.

    Each token is decided by one window, that in which it is farthest from where the
    text was cut. What is written of one token goes [windows, (tokens)], its windows
    overlapping, or [texts, (tokens)], each token once.

    Attributes:
        texts: int64 tensor [windows], the text each is of.
        starts, ends: int64 tensors [windows], in tokens of the text.
        first_decided, last_decided: the same of the tokens that it decides, the last
            one not included.
        row_starts: int64 tensor [windows], where the text begins among the tokens of
            all texts.
    """

    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    first_decided: tf.Tensor
    last_decided: tf.Tensor
    row_starts: tf.Tensor

    @classmethod
    def of(cls, tokens: tf.RaggedTensor, size: Any, stride: Any) -> Windows:
        """Cut texts into windows.

        Args:
            tokens: ragged tensor [texts, (tokens)].
            size: int, or int64 tensor [texts], most tokens of a window.
            stride: int, or int64 tensor [texts], tokens from the start of one window
                to that of the next. The last window of a text ends with it.
        """
        lengths = tokens.row_lengths()
        size, stride = (tf.zeros_like(lengths) + x for x in (size, stride))
        beyond = tf.maximum(lengths - size, 0)
        counts = 1 + (beyond + stride - 1) // stride
        texts = tf.repeat(tf.range(tokens.nrows()), counts)
        windows = tf.range(tf.size(texts, tf.int64))
        number = windows - tf.gather(tf.cumsum(counts, exclusive=True), texts)
        starts = number * tf.gather(stride, texts)
        starts = tf.minimum(starts, tf.gather(beyond, texts))
        lengths = tf.gather(lengths, texts)
        ends = tf.minimum(starts + tf.gather(size, texts), lengths)
        # Between two windows in the middle of what they share.
        middles = (starts + tf.concat([[0], ends], axis=0)[:-1] + 1) // 2
        first = tf.where(number == 0, tf.zeros_like(middles), middles)
        is_last = number + 1 == tf.gather(counts, texts)
        following = tf.concat([first, [0]], axis=0)[1:]
        last = tf.where(is_last, lengths, following)
        row_starts = tf.gather(tokens.row_starts(), texts)
        return cls(texts, starts, ends, first, last, row_starts)

    def __len__(self) -> int:
        return int(tf.size(self.texts))

    def of_windows(self, values: tf.Tensor) -> tf.RaggedTensor:
        """What is known of each token [tokens of all texts], by window."""
        positions = tf.ragged.range(
            self.row_starts + self.starts, self.row_starts + self.ends
        )
        return tf.gather(values, positions)

    def are_decided(self) -> tf.RaggedTensor:
        """Whether a window decides its tokens, bool [windows, (tokens)]."""
        positions = tf.ragged.range(self.starts, self.ends)
        rows = positions.value_rowids()
        decided = (positions.values >= tf.gather(self.first_decided, rows)) & (
            positions.values < tf.gather(self.last_decided, rows)
        )
        return positions.with_values(decided)

    def merge(self, values: tf.Tensor | tf.RaggedTensor, before: int = 1) -> tf.Tensor:
        """What the windows say of the tokens they decide, [tokens of all texts, ...].

        Args:
            values: (ragged) tensor [windows, (time), ...].
            before: int, special tokens before those of the text.
        """
        if isinstance(values, tf.RaggedTensor):
            flat, row_starts = values.values, values.row_starts()
        else:
            shape = tf.shape(values, tf.int64)
            flat = tf.reshape(values, tf.concat([[-1], shape[2:]], axis=0))
            row_starts = tf.range(shape[0]) * shape[1]
        shift = row_starts + before - self.starts
        positions = tf.ragged.range(
            self.first_decided + shift, self.last_decided + shift
        )
        return tf.gather(flat, positions.values)
