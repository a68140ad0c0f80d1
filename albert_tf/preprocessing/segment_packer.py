"""Packing of tokenized texts with special tokens, whole or in windows."""

import dataclasses
from collections.abc import Sequence
from typing import Self, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_integer
from albert_tf_lite.packing import round_up
from albert_tf_lite.unknown import TruncatedTextsWarning, warn

# A number of tokens for all texts, or an int64 tensor [texts].
Count: TypeAlias = int | tf.Tensor


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
            included.
        padding: `"longest"` pads to the longest example of the batch, rounded up to
            `pad_to_multiple_of`; `"max_length"` to `sequence_length`.
        pad_to_multiple_of: int. Fewer different lengths mean fewer traces.

    Raises:
        AlbertError: if an argument has a value that is not allowed.

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
    padding: str = "longest"
    pad_to_multiple_of: int = 8

    def __post_init__(self):
        if self.padding not in ("longest", "max_length"):
            raise AlbertError(
                '`padding` must be "longest" or "max_length". '
                f"Received: padding={self.padding!r}"
            )
        # Room for [CLS] a [SEP] b [SEP].
        check_integer("sequence_length", self.sequence_length, 5)
        check_integer("pad_to_multiple_of", self.pad_to_multiple_of)

    def __call__(self, segments: Sequence[tf.RaggedTensor]) -> dict[str, tf.Tensor]:
        """Pack and pad a batch.

        Args:
            segments: tuple of one or two ragged int tensors [batch, (tokens)].

        Returns:
            A dict of int32 tensors [batch, time]: `token_ids`, `segment_ids` (0 up to
            the first [SEP], then 1, and 0 for padding) and `padding_mask` (1 for a
            token).
        """
        tokens, first_lengths = self.pack(segments)
        return self.pad(tokens, first_lengths)

    def pack(
        self, segments: Sequence[tf.RaggedTensor]
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Truncate, join and add the special tokens, without padding.

        Returns:
            The packed tokens, ragged int32 [batch, (tokens)], and the number of tokens
            up to the first [SEP], int64 [batch].
        """
        segments = [tf.cast(segment, tf.int32) for segment in segments]
        if len(segments) == 1:
            first = _keep(segments[0], self.sequence_length - 2)
            end = []
        else:
            first, second = self._truncate_pair(segments[0], segments[1])
            has_second = tf.cast(second.row_lengths() > 0, tf.int64)
            separators = tf.fill([tf.reduce_sum(has_second)], self.sep_token_id)
            # Without the checks, which would triple the size of an exported graph.
            last_separator = tf.RaggedTensor.from_row_lengths(
                separators, has_second, validate=False
            )
            end = [second, last_separator]
        column = tf.ones([tf.cast(first.nrows(), tf.int32), 1], tf.int32)
        start = [column * self.cls_token_id, first, column * self.sep_token_id]
        return tf.concat(start + end, axis=1), first.row_lengths() + 2

    def pad(
        self, tokens: tf.RaggedTensor, first_lengths: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Pad the results of `pack`."""
        lengths = tokens.row_lengths()
        time = tf.constant(self.sequence_length, tf.int64)
        if self.padding == "longest":
            # At least 1, because models read the first position of an empty batch too.
            longest = tf.maximum(tf.reduce_max(lengths), 1)
            time = tf.minimum(round_up(longest, self.pad_to_multiple_of), time)
        position = tf.range(time)[tf.newaxis]
        is_token = position < lengths[:, tf.newaxis]
        is_second = is_token & (position >= first_lengths[:, tf.newaxis])
        shape = tf.stack([tokens.nrows(), time])
        features = {
            "token_ids": tokens.to_tensor(self.pad_token_id, shape=shape),
            "segment_ids": tf.cast(is_second, tf.int32),
            "padding_mask": tf.cast(is_token, tf.int32),
        }
        static = self.sequence_length if self.padding == "max_length" else None
        return {
            name: tf.ensure_shape(value, [None, static])
            for name, value in features.items()
        }

    def full_lengths(self, segments: Sequence[tf.RaggedTensor]) -> tf.Tensor:
        """Return the number of tokens before truncation, int64 [batch]."""
        length = segments[0].row_lengths() + 2
        if len(segments) > 1:
            second = segments[1].row_lengths()
            # With a [SEP], unless it is empty.
            length += second + tf.minimum(second, 1)
        return length

    @property
    def limit(self) -> str:
        """The maximum length of an example, for messages."""
        return f"sequence_length={self.sequence_length} tokens"

    def padded_lengths(self, lengths: ArrayLike) -> np.ndarray:
        """Return the padded lengths of batches by their longest examples."""
        if self.padding == "max_length":
            return np.full_like(lengths, self.sequence_length)
        padded = round_up(np.maximum(lengths, 1), self.pad_to_multiple_of)
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedTexts:
    """Rows of tokens that a model reads, one per example or per window."""

    tokens: tf.RaggedTensor  # int32 [rows, (tokens)] or [rows, (choices), (tokens)].
    first_lengths: tf.Tensor  # int64 [rows] or [rows, (choices)], of first segments.
    # The example of each row, int64 [rows]; `None` for one row per example.
    examples: tf.Tensor | None = None

    def __len__(self) -> int:
        return int(self.tokens.nrows())

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

    def of_rows(self, values: tf.Tensor | np.ndarray) -> tf.Tensor | np.ndarray:
        """Return the values of the rows for values of the examples."""
        return values if self.examples is None else tf.gather(values, self.examples)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowedTexts(PackedTexts):
    """Texts in overlapping windows, with the characters of their tokens."""

    starts: tf.RaggedTensor  # int32 [texts, (tokens)], in characters.
    ends: tf.RaggedTensor
    windows: "Windows"

    @classmethod
    def of(
        cls,
        packer: SegmentPacker,
        ids: tf.RaggedTensor,
        starts: tf.RaggedTensor,
        ends: tf.RaggedTensor,
        size: Count,
        stride: Count,
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
        return cls(
            tokens=tokens,
            first_lengths=lengths,
            examples=windows.texts,
            starts=starts,
            ends=ends,
            windows=windows,
        )


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
    def of(cls, tokens: tf.RaggedTensor, size: Count, stride: Count) -> "Windows":
        """Cut tokens [texts, (tokens)] into windows of at most `size` tokens.

        They begin `stride` tokens apart, except for the last, which ends with the text.
        `albert_tf_lite.packing.windows_of` has a drawing.
        """
        lengths = tokens.row_lengths()
        size = tf.zeros_like(lengths) + size
        stride = tf.zeros_like(lengths) + stride
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


def warn_of_truncation(
    is_long: tf.Tensor | np.ndarray, limit: str, part: str = ""
) -> None:
    """Warn if examples are longer than a limit, bool [examples].

    `limit` and `part`, such as "question", are those of `TruncatedTextsWarning`.
    """
    if count := int(np.count_nonzero(is_long)):
        warn(TruncatedTextsWarning(count, len(is_long), limit, part), stacklevel=3)
