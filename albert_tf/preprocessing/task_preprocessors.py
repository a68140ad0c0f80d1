"""Preprocessors of tasks that read choices or sentences."""

import dataclasses

import keras
import tensorflow as tf

from albert_tf.preprocessing.articles import sentences_of, split_sentences_in_graph
from albert_tf.preprocessing.segment_packer import (
    PackedTexts,
    SegmentPacker,
    warn_of_truncation,
)
from albert_tf.preprocessing.text_preprocessors import (
    AlbertTextClassifierPreprocessor,
    Parts,
)
from albert_tf.preprocessing.texts import (
    as_segments,
    as_string_tensor,
    check_parts,
)
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts


@dataclasses.dataclass(frozen=True)
class ChoicePacker(SegmentPacker):
    """Pad tokens [batch, (choices), (tokens)] to [batch, choices, time]."""

    def pad(self, tokens, first_lengths):
        features = super().pad(tokens.values, first_lengths.values)
        by_choice = {name: tokens.with_values(x) for name, x in features.items()}
        return {
            "token_ids": by_choice["token_ids"].to_tensor(self.pad_token_id),
            "segment_ids": by_choice["segment_ids"].to_tensor(0),
            "padding_mask": by_choice["padding_mask"].to_tensor(0),
        }


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultipleChoicePreprocessor(AlbertTextClassifierPreprocessor):
    """Tokenize and pack contexts, questions and choices for `AlbertMultipleChoice`.

    Each choice becomes `[CLS] context [SEP] question choice [SEP]`. Long examples are
    truncated by `SegmentPacker`, long contexts thus at their end.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        sequence_length: int. Maximum number of tokens per choice, special tokens
            included.
        padding: `"longest"` (of the batch) or `"max_length"`, for datasets that are
            batched later.
        pad_to_multiple_of: int. See `SegmentPacker`.

    Call arguments:
        x: the tuple `(contexts, questions, choices)`: two lists or tensors of strings
            [batch], and a list of lists, ragged tensor or tensor of strings
            [batch, choices], in which `""` at the end is no choice; or a string, a
            string and its choices. A dict of ids passes unchanged.

    Returns:
        A dict of int32 tensors [batch, choices, time], or [choices, time].

    Raises:
        AlbertError: if `x` is another tuple, or an example has no choices.

    Reference:
        google-research/albert `race_utils.py`, `convert_single_example`.
    """

    packer_cls = ChoicePacker

    @staticmethod
    def parts(x):
        check_parts(x, "contexts", "questions", "choices")
        contexts, questions = as_segments(x[:2])
        return contexts, questions, x[2]

    def pack(self, x):
        """Return ragged tokens and lengths of contexts, [batch, (choices), ...]."""
        tokens, first_lengths, _ = self._pack(x)
        return tokens, first_lengths

    def pack_rows(self, x: Parts) -> PackedTexts:
        tokens, first_lengths, is_long = self._pack(x)
        warn_of_truncation(tf.reduce_any(is_long, axis=1), self.packer.limit)
        return PackedTexts(tokens=tokens, first_lengths=first_lengths)

    def _pack(self, x):
        """Return ragged tokens, lengths of contexts and which choices are too long."""
        choices = ragged_choices(x)
        example = choices.value_rowids()
        contexts, questions = as_segments(x[:2])
        # A row per choice.
        first = tf.gather(self.tokenizer(contexts), example)
        questions = tf.gather(self.tokenizer(questions), example)
        second = tf.concat([questions, self.tokenizer(choices.values)], axis=1)
        is_long = self.packer.full_lengths([first, second]) > self.sequence_length
        tokens, first_lengths = self.packer.pack([first, second])
        return (
            choices.with_values(tokens),
            choices.with_values(first_lengths),
            choices.with_values(is_long),
        )


def ragged_choices(x: Parts) -> tf.RaggedTensor:
    """Return the choices of `(contexts, questions, choices)`, [batch, (choices)]."""
    check_parts(x, "contexts", "questions", "choices")
    contexts, _, choices = x
    if isinstance(choices, tf.RaggedTensor):
        return choices
    if tf.is_tensor(choices):
        more = tf.cumsum(tf.cast(choices != "", tf.int32), axis=1, reverse=True)
        return tf.ragged.boolean_mask(choices, more > 0)
    choices = as_texts(choices, "choices")
    wrong = [texts for texts in choices if isinstance(texts, str) or not texts]
    if len(choices) != len(contexts) or wrong:
        raise AlbertError(
            "`choices` should hold a list of at least one string per context. "
            f"Received: {len(choices)} lists for {len(contexts)} contexts, {wrong[:1]}"
        )
    flat = as_string_tensor([text for texts in choices for text in texts], "choices")
    return tf.RaggedTensor.from_row_lengths(flat, [len(texts) for texts in choices])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Articles(PackedTexts):
    """Articles in windows of whole sentences: `[CLS] a [SEP] [CLS] b [SEP]`."""

    # Indices of the sentences' [CLS] tokens among all tokens, int64 [sentences].
    positions: tf.Tensor


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSummarizerPreprocessor(AlbertTextClassifierPreprocessor):
    """Tokenize and pack articles, with a [CLS] before each sentence.

    An article is a string, split at the ends of sentences, or the list of its
    sentences. A window holds as many whole sentences as fit; a sentence longer than a
    window is truncated. A call returns the first window of each article; `pack_texts`
    returns all.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        sequence_length: int. Maximum number of tokens per window, special tokens
            included.
        padding: `"longest"` (of the batch) or `"max_length"`, for datasets that are
            batched later.
        pad_to_multiple_of: int. See `SegmentPacker`.

    Call arguments:
        x: a list or tensor of strings [batch]. A dict of ids passes unchanged.

    Returns:
        A dict of int32 tensors [batch, time].

    Reference:
        [BertSum](https://arxiv.org/abs/1908.08345), section 3.1, without its
        alternating segments.
    """

    def pack(self, x):
        (texts,) = as_segments(x)
        articles = self.cut(split_sentences_in_graph(texts))
        first = tf.searchsorted(articles.examples, tf.range(tf.size(texts, tf.int64)))
        tokens = tf.gather(articles.tokens, first)
        return tokens, tokens.row_lengths()

    def pack_rows(self, x: Parts) -> Articles:
        """Tokenize articles, strings or lists of sentences, and cut them."""
        articles = sentences_of(x)
        flat = as_string_tensor([text for article in articles for text in article])
        lengths = tf.constant([len(article) for article in articles], tf.int64)
        sentences = tf.RaggedTensor.from_row_lengths(flat, lengths)
        tokens = self.tokenizer(sentences.values)
        is_long = self.packer.full_lengths([tokens]) > self.sequence_length
        has_long = tf.reduce_any(sentences.with_values(is_long), axis=1)
        warn_of_truncation(has_long, self.packer.limit, "sentence")
        return self._cut(sentences, tokens)

    def cut(self, sentences: tf.RaggedTensor) -> Articles:
        """Cut strings [articles, (sentences)] into windows; also works in a graph."""
        return self._cut(sentences, self.tokenizer(sentences.values))

    def _cut(self, sentences, tokens):
        tokens, _ = self.packer.pack([tokens])
        lengths = tokens.row_lengths()
        article = sentences.value_rowids()
        window = _windows(lengths, article, tf.constant(self.sequence_length, tf.int64))
        sizes = tf.math.segment_sum(lengths, window)
        tokens = tf.RaggedTensor.from_row_lengths(tokens.values, sizes, validate=False)
        return Articles(
            tokens=tokens,
            first_lengths=sizes,
            examples=tf.math.segment_min(article, window),
            positions=tf.cumsum(lengths, exclusive=True),
        )


@tf.function(reduce_retracing=True)
def _windows(lengths, article, size):
    """Return the window of each sentence: as many of an article as fit."""

    def step(state, sentence):
        used, window, before = state
        length, article = sentence
        begins = (used + length > size) | (article != before)
        used = tf.where(begins, length, used + length)
        return used, window + tf.cast(begins, tf.int64), article

    start = tf.constant(0, tf.int64), tf.constant(-1, tf.int64)
    return tf.scan(step, (lengths, article), (*start, tf.constant(-1, tf.int64)))[1]
