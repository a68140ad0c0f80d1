from __future__ import annotations

import dataclasses
from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import as_segments, as_string_tensor
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class ChoicePacker(SegmentPacker):
    """`SegmentPacker` of examples with several choices each."""

    def pad(self, tokens, first_lengths):
        """Pad tokens [batch, (choices), (tokens)] to [batch, choices, time].

        An example with fewer choices than others gets such without any token.
        """
        features = super().pad(tokens.values, first_lengths.values)
        return {
            name: tokens.with_values(value).to_tensor(
                self.pad_token_id if name == "token_ids" else 0
            )
            for name, value in features.items()
        }


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultipleChoicePreprocessor(AlbertTextClassifierPreprocessor):
    """Contexts, questions and choices in, what `AlbertMultipleChoice` takes out.

    Each choice becomes `[CLS] context [SEP] question choice [SEP]`. What is too long is
    cut as `SegmentPacker` does, which with a long context means its end.

    Args:
        as for `AlbertTextClassifierPreprocessor`.

    Call arguments:
        x: the tuple `(contexts, questions, choices)`: two lists or tensors of strings
            [batch], and a list of lists, ragged tensor or tensor of strings
            [batch, choices], in which `""` at the end is no choice; or a dict of ids,
            which passes unchanged.

    Returns:
        A dict of int32 tensors [batch, choices, time].

    Reference:
        google-research/albert `race_utils.py`, `convert_single_example`.
    """

    @property
    def packer(self) -> ChoicePacker:
        return ChoicePacker(**dataclasses.asdict(super().packer))

    def call(self, x, y=None, sample_weight=None):
        if not isinstance(x, dict):
            x = self.packer.pad(*self.pack(x))
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack(self, x: Any) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Tokenize a batch.

        Returns:
            The packed tokens, ragged int32 [batch, (choices), (tokens)], and how many
            of them belong to the context, ragged int64 [batch, (choices)].
        """
        return self.tokenize_and_pack(x)[:2]

    def tokenize_and_pack(self, x):
        """As `pack`, and how many examples were cut to `sequence_length`."""
        choices = ragged_choices(x)
        contexts, questions = as_segments(x[:2])
        example = choices.value_rowids()
        contexts, questions = (
            tf.gather(self.tokenizer(texts), example) for texts in (contexts, questions)
        )
        seconds = tf.concat([questions, self.tokenizer(choices.values)], axis=1)
        more = seconds.row_lengths()
        length = contexts.row_lengths() + 2 + more + tf.minimum(more, 1)
        is_cut = tf.cast(length > self.sequence_length, tf.int32)
        cut = tf.math.unsorted_segment_max(is_cut, example, choices.nrows())
        packed = self.packer.pack([contexts, seconds])
        return *map(choices.with_values, packed), tf.reduce_sum(tf.maximum(cut, 0))


def ragged_choices(x: Any) -> tf.RaggedTensor:
    """The choices of `(contexts, questions, choices)`, strings [batch, (choices)].

    Raises:
        AlbertError: if it is no such tuple, there are not as many lists of choices as
            contexts, or one is empty.
    """
    if not isinstance(x, tuple) or len(x) != 3:
        count = f" of {len(x)}" if isinstance(x, tuple) else ""
        raise AlbertError(
            "`x` should be the tuple (contexts, questions, choices). Received: "
            f"{type(x).__name__}{count}"
        )
    contexts, _, choices = x
    if isinstance(choices, tf.RaggedTensor):
        return choices
    if tf.is_tensor(choices):
        more = tf.cumsum(tf.cast(choices != "", tf.int32), axis=1, reverse=True)
        return tf.ragged.boolean_mask(choices, more > 0)
    if len(choices) != len(contexts):
        raise AlbertError(
            "There must be a list of choices for each context. Received: "
            f"{len(choices)} lists and {len(contexts)} contexts."
        )
    for position, texts in enumerate(choices):
        if isinstance(texts, (str, bytes)) or len(texts) == 0:
            raise AlbertError(
                "`choices` should hold a list of strings for each example, at least "
                f"one string. Element {position} is {texts!r}."
            )
    flat = [text for texts in choices for text in texts]
    values = as_string_tensor(flat, "choices") if flat else tf.zeros([0], tf.string)
    return tf.RaggedTensor.from_row_lengths(values, [len(texts) for texts in choices])
