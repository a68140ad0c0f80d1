from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.offsets import tokenize_with_offsets, without_overlap
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import as_segments
from albert_tf.preprocessing.windows import Windows
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class WindowedTexts:
    """Texts, their tokens, and the windows that a model reads.

    Attributes:
        starts, ends: ragged int32 tensors [texts, (tokens)], the characters of each
            token. No character is in two tokens, so that some tokens are empty.
        windows: `Windows` of the tokens.
        tokens, first_lengths: the windows as `SegmentPacker.pack` gives them.
    """

    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    windows: Windows
    tokens: tf.RaggedTensor
    first_lengths: tf.Tensor

    def __len__(self) -> int:
        return len(self.windows)


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTokenClassifierPreprocessor(AlbertTextClassifierPreprocessor):
    """Strings in, what `AlbertBackbone` takes out; long texts in windows.

    Called on strings it gives one example a text, cut to `sequence_length`, as
    `AlbertTextClassifierPreprocessor`; `windows` loses nothing.

    Args:
        tokenizer: a `WordPieceTokenizer` or a `SentencePieceTokenizer`.
        sequence_length: int. Most tokens of a window, the special ones included.
        stride: optional int. Tokens from the start of one window of a long text to
            that of the next. By default three quarters of what a window holds.
        padding, pad_to_multiple_of: as for `AlbertTextClassifierPreprocessor`.

    Call arguments:
        x, sample_weight: as for `AlbertTextClassifierPreprocessor`.
        y: optional (ragged) int tensor [batch, (characters)], the tag of each character
            of the texts. It becomes that of each token, int32 [batch, time], -1 for
            padding and special tokens.

    Raises:
        AlbertError: if windows that far apart would skip tokens, or for a pair of
            texts.
    """

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 512,
        stride: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length=sequence_length, **kwargs)
        if stride is not None and not 1 <= stride <= sequence_length - 2:
            raise AlbertError(
                "`stride` must be from 1 to the tokens that a window holds, "
                f"sequence_length - 2 = {sequence_length - 2}. Received: {stride}"
            )
        self.stride = stride

    def call(self, x, y=None, sample_weight=None):
        refuse_pairs(x)
        if y is not None and not isinstance(x, dict):
            (text,) = as_segments(x)
            y = self._tags_of_tokens(text, y)
            if sample_weight is not None:
                # One a text, with an axis for the tokens as the losses have one.
                sample_weight = tf.convert_to_tensor(sample_weight)[:, tf.newaxis]
        return super().call(x, y=y, sample_weight=sample_weight)

    def _tags_of_tokens(self, text, tags):
        """The tag of the first character of each token, -1 where there is no token."""
        _, *offsets = self.tokenizer.tokenize_with_offsets(text)
        starts, ends = without_overlap(*(tf.cast(x, tf.int32) for x in offsets))
        has_text = starts.with_values(starts.values < ends.values)
        starts = starts.with_values(tf.where(has_text.values, starts.values, 0))
        tags = tf.cast(tf.gather(tags, starts, batch_dims=1), tf.int32)
        tags = tags.with_values(tf.where(has_text.values, tags.values, -1))
        # As the tokens: cut, between two special ones, padded.
        features = self.packer([tags])
        position = tf.range(tf.shape(features["token_ids"])[1])
        last = tf.reduce_sum(features["padding_mask"], axis=1, keepdims=True) - 1
        return tf.where((position > 0) & (position < last), features["token_ids"], -1)

    def windows(self, x: Sequence[str]) -> WindowedTexts:
        """The windows of texts, a list of any Python strings."""
        refuse_pairs(x)
        return self.cut(*tokenize_with_offsets(self.tokenizer, x))

    def cut(
        self, ids: tf.RaggedTensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
    ) -> WindowedTexts:
        """The windows of tokens with offsets, in a graph, too."""
        size = self.sequence_length - 2
        windows = Windows.of(ids, size, self.stride or max(size * 3 // 4, 1))
        packed = self.packer.pack([windows.of_windows(ids.values)])
        return WindowedTexts(*without_overlap(starts, ends), windows, *packed)

    def get_config(self):
        return {**super().get_config(), "stride": self.stride}


def refuse_pairs(x: Any) -> None:
    """Raise an error for pairs of texts, of which there is no one text to tag."""
    if isinstance(x, tuple) and len(as_segments(x)) > 1:
        raise AlbertError(
            "A token classifier takes one text an example, as a list of strings. "
            "Received a tuple of two lists, which is a pair of texts."
        )
