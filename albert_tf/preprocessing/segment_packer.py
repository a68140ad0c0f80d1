from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf_lite.errors import AlbertError

# Lengths are rounded up, because fewer different lengths mean fewer traces.
_MULTIPLE = 8


@dataclasses.dataclass(frozen=True)
class SegmentPacker:
    """Pack one or two tokenized texts as BERT does, and pad the batch.

    One text becomes `[CLS] a [SEP]`, two become `[CLS] a [SEP] b [SEP]`. If a pair is
    too long, tokens are dropped from the end of the longer text, of the second if both
    are equal. A pair whose second text is empty is packed as one text, as in the
    original.

    Only core TensorFlow operations are used: KerasHub's `MultiSegmentPacker` needs
    `TFText>RoundRobinTrim`, which TensorFlow Serving does not link.

    Args:
        cls_token_id: int.
        sep_token_id: int.
        pad_token_id: int.
        sequence_length: int. Maximum number of tokens per example, special tokens
            included. Batches are padded to their longest example, rounded up to a
            multiple of 8.

    Raises:
        AlbertError: if `sequence_length` is below 5.

    Example:
    ```python
    packer = SegmentPacker(cls_token_id=2, sep_token_id=3, sequence_length=8)
    packer((tf.ragged.constant([[5, 6]]), tf.ragged.constant([[7]])))["token_ids"]
    # [[2, 5, 6, 3, 7, 3, 0, 0]]
    ```

    Reference:
        google-research/bert `run_classifier.py`, `convert_single_example` and
        `_truncate_seq_pair`.
    """

    cls_token_id: int
    sep_token_id: int
    pad_token_id: int = 0
    sequence_length: int = 512

    def __post_init__(self):
        if self.sequence_length < 5:
            raise AlbertError(
                "`sequence_length` must leave room for [CLS] a [SEP] b [SEP], 5 "
                f"tokens. Received: sequence_length={self.sequence_length}"
            )

    def __call__(self, segments: Sequence[tf.RaggedTensor]) -> dict[str, tf.Tensor]:
        """Pack and pad a batch.

        Args:
            segments: tuple of one or two ragged int tensors [batch, (tokens)].

        Returns:
            A dict of int32 tensors [batch, time]: `token_ids`, `segment_ids` (0 up to
            the first [SEP], then 1, and 0 for padding) and `padding_mask` (1 for a
            token).
        """
        return self.pad(*self.pack(segments))

    def pack(
        self, segments: Sequence[tf.RaggedTensor]
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Truncate, join and add the special tokens, without padding.

        Returns:
            The packed tokens, ragged int32 [batch, (tokens)], and the number of tokens
            up to the first [SEP], int64 [batch].
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
        """Pad the results of `pack`."""
        lengths = tokens.row_lengths()
        # At least 1, because models read the first position of an empty batch too.
        longest = tf.maximum(tf.reduce_max(lengths), 1)
        time = tf.minimum(-(-longest // _MULTIPLE) * _MULTIPLE, self.sequence_length)
        position = tf.range(time)[tf.newaxis]
        is_token = position < lengths[:, tf.newaxis]
        is_second = is_token & (position >= first_lengths[:, tf.newaxis])
        shape = tf.stack([tokens.nrows(), time])
        return {
            "token_ids": tokens.to_tensor(self.pad_token_id, shape=shape),
            "segment_ids": tf.cast(is_second, tf.int32),
            "padding_mask": tf.cast(is_token, tf.int32),
        }

    def full_lengths(self, segments: Sequence[tf.RaggedTensor]) -> tf.Tensor:
        """Return the number of tokens before truncation, int64 [batch]."""
        first, *second = (segment.row_lengths() for segment in segments)
        return first + 2 + sum(length + tf.minimum(length, 1) for length in second)

    def padded_lengths(self, lengths: Any) -> np.ndarray:
        """Return the padded lengths of batches by their longest examples."""
        padded = -(-np.maximum(lengths, 1) // _MULTIPLE) * _MULTIPLE
        return np.minimum(padded, self.sequence_length)

    def _truncate_pair(self, first, second):
        """Truncate the longer text first, in one step.

        Dropping token by token until the sum fits ends with the shorter text whole, or
        with both at half the room, the odd token with the first.
        """
        second_length = second.row_lengths()
        # One [SEP] fewer where the second text is empty.
        room = self.sequence_length - 2 - tf.minimum(second_length, 1)
        half = (room + 1) // 2
        first = _keep(first, tf.maximum(room - second_length, half))
        return first, _keep(second, room - first.row_lengths())


def _keep(tokens, most):
    """Return the first `most` tokens of each row; `most` is a number or [rows]."""
    lengths = tf.minimum(tokens.row_lengths(), tf.cast(most, tf.int64))
    starts = tokens.row_starts()
    kept = tf.ragged.range(starts, starts + lengths)
    return kept.with_values(tf.gather(tokens.values, kept.values))


def _ragged(values, lengths):
    # Without the checks, which would triple the size of an exported graph.
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
