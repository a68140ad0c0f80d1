from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import as_segments, tokenize_with_offsets
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTokenClassifierPreprocessor(AlbertTextClassifierPreprocessor):
    """Tokenize and pack texts for `AlbertTokenClassifier`.

    A call returns one example per text, truncated to `sequence_length`. `pack_texts`
    returns long texts in overlapping windows.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        sequence_length: int. Maximum number of tokens per window, special tokens
            included.
        stride: optional int. Tokens from the start of one window of a long text to
            that of the next. By default three quarters of a window.
        padding, pad_to_multiple_of: as for `AlbertTextClassifierPreprocessor`.

    Call arguments:
        x, sample_weight: as for `AlbertTextClassifierPreprocessor`, without pairs.
        y: optional (ragged) int tensor [batch, (characters)], the tag of each
            character. It becomes that of each token, int32 [batch, time], -1 for
            padding and special tokens.

    Returns:
        As of `AlbertTextClassifierPreprocessor`.

    Raises:
        AlbertError: if `stride` would leave out tokens, or `x` is a pair of texts.
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
                "`stride` must be from 1 to sequence_length - 2 = "
                f"{sequence_length - 2}, the tokens of a window. Received: {stride}"
            )
        self.stride = stride

    def call(self, x, y=None, sample_weight=None):
        refuse_pairs(x)
        if y is not None and not isinstance(x, dict):
            y = self._tags_of_tokens(x, y)
            if sample_weight is not None:
                # With an axis for the tokens, which the losses have.
                sample_weight = tf.convert_to_tensor(sample_weight)[:, tf.newaxis]
        return super().call(x, y=y, sample_weight=sample_weight)

    def _tags_of_tokens(self, x, tags):
        """Return the tag of the first character of each token."""
        (text,) = as_segments(x)
        _, *offsets = tokenize_with_offsets(self.tokenizer, text)
        starts, ends = without_overlap(*offsets)
        has_text = starts.values < ends.values
        starts = starts.with_values(tf.where(has_text, starts.values, 0))
        tags = tf.cast(tf.gather(tags, starts, batch_dims=1), tf.int32)
        tags = tags.with_values(tf.where(has_text, tags.values, -1))
        # Truncated and padded like tokens.
        features = self.packer([tags])
        position = tf.range(tf.shape(features["token_ids"])[1])
        last = tf.reduce_sum(features["padding_mask"], axis=1, keepdims=True) - 1
        return tf.where((position > 0) & (position < last), features["token_ids"], -1)

    def pack_texts(self, x: Any) -> WindowedTexts:
        """Tokenize strings [batch] and cut them into windows; also works in a graph."""
        refuse_pairs(x)
        ids, starts, ends = tokenize_with_offsets(self.tokenizer, x)
        size = self.sequence_length - 2
        stride = self.stride or max(size * 3 // 4, 1)
        offsets = without_overlap(starts, ends)
        return WindowedTexts.of(self.packer, ids, *offsets, size, stride)


def without_overlap(
    starts: tf.RaggedTensor, ends: tf.RaggedTensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Return offsets [texts, (tokens)] in which no tokens share a character.

    If a character became several tokens, such as a Korean syllable, all but the first
    are empty (`start == end`).
    """
    before = tf.concat([tf.zeros_like(ends[:, :1]), ends[:, :-1]], axis=1).values
    starts = starts.with_values(tf.maximum(starts.values, before))
    return starts, ends.with_values(tf.maximum(starts.values, ends.values))


def refuse_pairs(x: Any) -> None:
    if isinstance(x, tuple) and len(as_segments(x)) > 1:
        raise AlbertError(
            "A token classifier takes one text per example, as a list of strings. "
            "Received a tuple of two lists, which is a pair of texts."
        )
