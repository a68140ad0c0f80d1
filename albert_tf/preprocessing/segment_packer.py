from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class SegmentPacker:
    """Packs one or two tokenized texts as BERT does, and pads the batch.

    One text becomes `[CLS] a [SEP]`, two become `[CLS] a [SEP] b [SEP]`. Of a
    pair that is too long, tokens are dropped from the end of whichever text is
    longer, of the second if they are equal. A pair whose second text is empty
    is packed as one text, as in the original.

    Written with core TensorFlow operations only: KerasHub's
    `MultiSegmentPacker` needs `TFText>RoundRobinTrim`, which TensorFlow Serving
    does not link.

    Args:
        cls_token_id: int.
        sep_token_id: int.
        pad_token_id: int.
        sequence_length: int. Most tokens of an example, the special ones
            included.
        padding: `"longest"` pads to the longest example of the batch, rounded
            up to `pad_to_multiple_of`; `"max_length"` to `sequence_length`.
        pad_to_multiple_of: int. Few different lengths mean few traces.

    Reference:
        google-research/bert `run_classifier.py`, `convert_single_example` and
        `_truncate_seq_pair`.
    """

    cls_token_id: int
    sep_token_id: int
    pad_token_id: int = 0
    sequence_length: int = 512
    padding: str = "longest"
    pad_to_multiple_of: int = 8

    def __post_init__(self):
        if self.padding not in ("longest", "max_length"):
            raise AlbertError(
                '`padding` must be "longest" or "max_length". '
                f"Received: padding={self.padding!r}"
            )
        if self.sequence_length < 5:
            raise AlbertError(
                "`sequence_length` must leave room for [CLS] a [SEP] b [SEP], 5 "
                f"tokens. Received: sequence_length={self.sequence_length}"
            )
        if self.pad_to_multiple_of < 1:
            raise AlbertError(
                "`pad_to_multiple_of` must be at least 1. Received: "
                f"pad_to_multiple_of={self.pad_to_multiple_of}"
            )

    def __call__(self, segments: Sequence[tf.RaggedTensor]) -> dict[str, tf.Tensor]:
        """Pack and pad a batch.

        Args:
            segments: tuple of one or two ragged int tensors [batch, (tokens)].

        Returns:
            A dict of int32 tensors [batch, time]: `token_ids`, `segment_ids`
            (0 up to the first [SEP], then 1, and 0 for padding) and
            `padding_mask` (1 for a token).
        """
        return self.pad(*self.pack(segments))

    def pack(
        self, segments: Sequence[tf.RaggedTensor]
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Truncate, join and add the special tokens, without padding.

        Returns:
            The packed tokens, a ragged int32 tensor [batch, (tokens)], and how
            many of them belong to the first segment, an int64 tensor [batch].
        """
        first, *second = (tf.cast(segment, tf.int32) for segment in segments)
        if second:
            first, *second = self._truncate_pair(first, *second)
            has_second = tf.cast(second[0].row_lengths() > 0, tf.int64)
            separators = tf.fill([tf.reduce_sum(has_second)], self.sep_token_id)
            second.append(_ragged(separators, has_second))
        else:
            first = _keep(first, self.sequence_length - 2)
        column = tf.ones([tf.cast(first.nrows(), tf.int32), 1], tf.int32)
        parts = [column * self.cls_token_id, first, column * self.sep_token_id]
        return tf.concat([*parts, *second], axis=1), first.row_lengths() + 2

    def pad(
        self, tokens: tf.RaggedTensor, first_lengths: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Pad packed tokens; the arguments are what `pack` gives."""
        lengths = tokens.row_lengths()
        time = tf.constant(self.sequence_length, tf.int64)
        if self.padding == "longest":
            multiple = self.pad_to_multiple_of
            # At least 1, for a model reads the first position of no examples too.
            longest = tf.maximum(tf.reduce_max(lengths), 1)
            time = tf.minimum((longest + multiple - 1) // multiple * multiple, time)
        position = tf.range(time)[tf.newaxis]
        is_token = position < lengths[:, tf.newaxis]
        is_second = is_token & (position >= first_lengths[:, tf.newaxis])
        static = self.sequence_length if self.padding == "max_length" else None
        shape = tf.stack([tokens.nrows(), time])
        token_ids = tokens.to_tensor(self.pad_token_id, shape=shape)
        features = {
            "token_ids": token_ids,
            "segment_ids": tf.cast(is_second, tf.int32),
            "padding_mask": tf.cast(is_token, tf.int32),
        }
        return {
            name: tf.ensure_shape(value, [None, static])
            for name, value in features.items()
        }

    def padded_lengths(self, lengths: Any) -> np.ndarray:
        """How long `pad` makes batches whose longest examples have these lengths."""
        if self.padding == "max_length":
            return np.full_like(lengths, self.sequence_length)
        multiple = self.pad_to_multiple_of
        padded = -(-np.maximum(lengths, 1) // multiple) * multiple
        return np.minimum(padded, self.sequence_length)

    def _truncate_pair(self, first, second):
        """Longest first, in one step.

        Dropping token by token until the sum fits ends with the shorter text
        whole, or with both at half the room, the odd token with the first.
        """
        second_length = second.row_lengths()
        # One [SEP] fewer where there is no second text.
        room = self.sequence_length - 2 - tf.minimum(second_length, 1)
        half = (room + 1) // 2
        first = _keep(first, tf.maximum(room - second_length, half))
        return first, _keep(second, room - first.row_lengths())


def _keep(tokens, most):
    """The first `most` tokens of each row; `most` is a number or one a row."""
    lengths = tf.minimum(tokens.row_lengths(), tf.cast(most, tf.int64))
    position = tf.range(tf.size(tokens.values, tf.int64))
    # Not `value_rowids`, which makes a table of all rows as long as the longest: 26 GB
    # for an article of 30,000 sentences, one of them of 100,000 characters.
    rows = tf.searchsorted(tokens.row_splits[1:], position, side="right")
    position -= tf.gather(tokens.row_starts(), rows)
    kept = tf.boolean_mask(tokens.values, position < tf.gather(lengths, rows))
    return _ragged(kept, lengths)


def _ragged(values, lengths):
    """Without the checks, which would triple the size of an exported graph."""
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
