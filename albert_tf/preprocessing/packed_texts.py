"""Tokenized texts with special tokens, whole or in windows, not yet padded."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Self

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import SegmentPacker


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedTexts:
    """Rows of tokens that a model reads, one per example or per window."""

    tokens: tf.RaggedTensor  # int32 [rows, (tokens)] or [rows, (choices), (tokens)].
    first_lengths: tf.Tensor  # int64 [rows] or [rows, (choices)], of first segments.

    def __len__(self) -> int:
        return int(self.tokens.nrows())

    @property
    def examples(self) -> tf.Tensor | None:
        """The example of each row, int64 [rows]; `None` for one row per example."""
        return None

    @property
    def texts_per_row(self) -> int:
        """The largest number of texts in a row."""
        if self.tokens.ragged_rank == 1:
            return 1
        return int(tf.reduce_max(self.tokens.row_lengths()))

    @property
    def lengths(self) -> tf.Tensor:
        """The number of tokens of each row, or of its longest text, int64 [rows]."""
        if self.tokens.ragged_rank == 1:
            return self.tokens.row_lengths()
        return tf.reduce_max(self.tokens.row_lengths(axis=2), axis=1)

    def of_rows(self, values: Any) -> Any:
        """Return the values of the rows for values of the examples."""
        return values if self.examples is None else tf.gather(values, self.examples)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowedTexts(PackedTexts):
    """Texts in overlapping windows, with the characters of their tokens."""

    starts: tf.RaggedTensor  # int32 [texts, (tokens)], in characters.
    ends: tf.RaggedTensor
    windows: Windows

    @classmethod
    def of(
        cls,
        packer: SegmentPacker,
        ids: tf.RaggedTensor,
        starts: tf.RaggedTensor,
        ends: tf.RaggedTensor,
        size: Any,
        stride: Any,
        first: tf.RaggedTensor | None = None,
    ) -> Self:
        """Cut tokens with offsets as `Windows.of` does, and pack the windows.

        `first` are tokens [texts, (tokens)] to put before each window of a text.
        """
        windows = Windows.of(ids, size, stride)
        segments = [windows.of_windows(ids.values)]
        if first is not None:
            segments.insert(0, tf.gather(first, windows.texts))
        tokens, lengths = packer.pack(segments)
        found = {"starts": starts, "ends": ends, "windows": windows}
        return cls(tokens=tokens, first_lengths=lengths, **found)

    @property
    def examples(self):
        return self.windows.texts


@dataclasses.dataclass(frozen=True)
class Windows:
    """Overlapping windows of a batch of texts, as int64 tensors [windows].

    Each token is decided by one window, the one with most context around it.
    """

    texts: tf.Tensor  # The text of each window.
    starts: tf.Tensor  # In tokens of the text.
    ends: tf.Tensor
    first_decided: tf.Tensor
    last_decided: tf.Tensor  # Excluded.
    row_starts: tf.Tensor  # Where the text begins among the tokens of all texts.

    @classmethod
    def of(cls, tokens: tf.RaggedTensor, size: Any, stride: Any) -> Windows:
        """Cut tokens [texts, (tokens)] into windows of at most `size` tokens.

        They begin `stride` tokens apart, except for the last, which ends with the text.
        Both are ints or int64 tensors [texts].
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
        # Neighbours meet in the middle of their overlap.
        middles = (starts + tf.concat([[0], ends], axis=0)[:-1] + 1) // 2
        first = tf.where(number == 0, tf.zeros_like(middles), middles)
        is_last = number + 1 == tf.gather(counts, texts)
        last = tf.where(is_last, lengths, tf.concat([first, [0]], axis=0)[1:])
        row_starts = tf.gather(tokens.row_starts(), texts)
        return cls(texts, starts, ends, first, last, row_starts)

    def __len__(self) -> int:
        return int(tf.size(self.texts))

    def of_windows(self, values: tf.Tensor) -> tf.RaggedTensor:
        """Return values [tokens of all texts] as [windows, (tokens)]."""
        positions = tf.ragged.range(
            self.row_starts + self.starts, self.row_starts + self.ends
        )
        return tf.gather(values, positions)

    def are_decided(self) -> tf.RaggedTensor:
        """Return which tokens a window decides, bool [windows, (tokens)]."""
        positions = tf.ragged.range(self.starts, self.ends)
        rows = positions.value_rowids()
        decided = (positions.values >= tf.gather(self.first_decided, rows)) & (
            positions.values < tf.gather(self.last_decided, rows)
        )
        return positions.with_values(decided)

    def merge(self, values: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Return values [windows, (time), ...] as [tokens of all texts, ...]."""
        if isinstance(values, tf.RaggedTensor):
            flat, row_starts = values.values, values.row_starts()
        else:
            shape = tf.shape(values, tf.int64)
            flat = tf.reshape(values, tf.concat([[-1], shape[2:]], axis=0))
            row_starts = tf.range(shape[0]) * shape[1]
        # The tokens of a window follow [CLS].
        shift = row_starts + 1 - self.starts
        positions = tf.ragged.range(
            self.first_decided + shift, self.last_decided + shift
        )
        return tf.gather(flat, positions.values)


def warn_of_truncation(is_long: Any, sequence_length: int) -> None:
    """Warn if examples are longer than `sequence_length`, bool [examples]."""
    if count := np.count_nonzero(is_long):
        warnings.warn(
            f"{count} of {len(is_long)} texts are longer than sequence_length="
            f"{sequence_length} tokens and were truncated.",
            stacklevel=3,
        )
