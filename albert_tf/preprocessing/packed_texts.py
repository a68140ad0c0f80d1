"""Tokenized examples with special tokens, not yet padded."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import tensorflow as tf

from albert_tf.preprocessing.windows import Windows


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedTexts:
    """The rows that a model reads, one per example or one per window of an example.

    Attributes:
        tokens: ragged int32 tensor [rows, (tokens)]; for multiple choice
            [rows, (choices), (tokens)].
        first_lengths: int64 tensor [rows], the number of tokens of the first segment;
            for multiple choice ragged [rows, (choices)].
    """

    tokens: tf.RaggedTensor
    first_lengths: tf.Tensor | tf.RaggedTensor

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
    """Texts in overlapping windows, with the characters of their tokens.

    Attributes:
        starts, ends: ragged int32 tensors [texts, (tokens)], the first character of
            each token and the one after its last.
        windows: `Windows` of the tokens.
    """

    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    windows: Windows

    @property
    def examples(self):
        return self.windows.texts


def warn_of_truncation(count: Any, total: int, sequence_length: int) -> None:
    """Warn of examples longer than `sequence_length`, if there are any."""
    if count:
        warnings.warn(
            f"{int(count)} of {total} texts are longer than sequence_length="
            f"{sequence_length} tokens and were truncated.",
            stacklevel=3,
        )
