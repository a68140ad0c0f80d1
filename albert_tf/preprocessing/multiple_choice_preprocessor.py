import dataclasses
from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import (
    PackedTexts,
    SegmentPacker,
    warn_of_truncation,
)
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import as_segments, as_string_tensor, check_parts
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class ChoicePacker(SegmentPacker):
    """Pad tokens [batch, (choices), (tokens)] to [batch, choices, time]."""

    def pad(self, tokens, first_lengths):
        features = super().pad(tokens.values, first_lengths.values)
        return {
            name: tokens.with_values(value).to_tensor(
                self.pad_token_id if name == "token_ids" else 0
            )
            for name, value in features.items()
        }


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultipleChoicePreprocessor(AlbertTextClassifierPreprocessor):
    """Tokenize and pack contexts, questions and choices for `AlbertMultipleChoice`.

    Each choice becomes `[CLS] context [SEP] question choice [SEP]`. Long examples are
    truncated by `SegmentPacker`, long contexts thus at their end.

    Args:
        tokenizer, sequence_length, padding, pad_to_multiple_of: as for
            `AlbertTextClassifierPreprocessor`.

    Call arguments:
        x: the tuple `(contexts, questions, choices)`: two lists or tensors of strings
            [batch], and a list of lists, ragged tensor or tensor of strings
            [batch, choices], in which `""` at the end is no choice. A dict of ids
            passes unchanged.

    Returns:
        A dict of int32 tensors [batch, choices, time].

    Raises:
        AlbertError: if `x` is another tuple, or an example has no choices.

    Reference:
        google-research/albert `race_utils.py`, `convert_single_example`.
    """

    packer_cls = ChoicePacker

    def call(self, x, y=None, sample_weight=None):
        if not isinstance(x, dict):
            x = self.packer.pad(*self.pack(x))
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack(self, x):
        """Return ragged tokens and lengths of contexts, [batch, (choices), ...]."""
        tokens, first_lengths, _ = self._pack(x)
        return tokens, first_lengths

    def pack_texts(self, x: Any) -> PackedTexts:
        tokens, first_lengths, is_long = self._pack(x)
        warn_of_truncation(tf.reduce_any(is_long, axis=1), self.sequence_length)
        return PackedTexts(tokens=tokens, first_lengths=first_lengths)

    def _pack(self, x):
        choices = ragged_choices(x)
        example = choices.value_rowids()
        contexts, questions = (
            tf.gather(self.tokenizer(texts), example) for texts in as_segments(x[:2])
        )
        seconds = tf.concat([questions, self.tokenizer(choices.values)], axis=1)
        segments = [contexts, seconds]
        is_long = self.packer.full_lengths(segments) > self.sequence_length
        return map(choices.with_values, (*self.packer.pack(segments), is_long))


def ragged_choices(x: Any) -> tf.RaggedTensor:
    """Return the choices of `(contexts, questions, choices)`, [batch, (choices)]."""
    check_parts(x, "contexts", "questions", "choices")
    contexts, _, choices = x
    if isinstance(choices, tf.RaggedTensor):
        return choices
    if tf.is_tensor(choices):
        more = tf.cumsum(tf.cast(choices != "", tf.int32), axis=1, reverse=True)
        return tf.ragged.boolean_mask(choices, more > 0)
    is_wrong = [isinstance(texts, (str, bytes)) or not len(texts) for texts in choices]
    if len(choices) != len(contexts) or any(is_wrong):
        wrong = [texts for texts, wrong in zip(choices, is_wrong, strict=True) if wrong]
        raise AlbertError(
            "`choices` should hold a list of at least one string per context. "
            f"Received: {len(choices)} lists for {len(contexts)} contexts, {wrong[:1]}"
        )
    flat = as_string_tensor([text for texts in choices for text in texts], "choices")
    return tf.RaggedTensor.from_row_lengths(flat, [len(texts) for texts in choices])
