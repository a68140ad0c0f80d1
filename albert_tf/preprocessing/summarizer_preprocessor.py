import dataclasses
from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.sentences import sentences_of, split_sentences_in_graph
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import as_segments, as_string_tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class Articles(PackedTexts):
    """Articles in windows of whole sentences: `[CLS] a [SEP] [CLS] b [SEP]`."""

    article: tf.Tensor  # int64 [windows]
    # Of the [CLS] of each sentence among the tokens of all windows, int64 [sentences].
    positions: tf.Tensor

    @property
    def examples(self):
        return self.article


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
        padding, pad_to_multiple_of: as for `AlbertTextClassifierPreprocessor`.

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
        first = tf.searchsorted(articles.article, tf.range(tf.size(texts, tf.int64)))
        tokens = tf.gather(articles.tokens, first)
        return tokens, tokens.row_lengths()

    def pack_texts(self, x: Any) -> Articles:
        """Tokenize articles, strings or lists of sentences, and cut them."""
        rows = sentences_of(x)
        flat = as_string_tensor([text for row in rows for text in row])
        lengths = tf.constant([len(row) for row in rows], tf.int64)
        return self.cut(tf.RaggedTensor.from_row_lengths(flat, lengths))

    def cut(self, sentences: tf.RaggedTensor) -> Articles:
        """Cut strings [articles, (sentences)] into windows; also works in a graph."""
        tokens, _ = self.packer.pack([self.tokenizer(sentences.values)])
        lengths, article = tokens.row_lengths(), sentences.value_rowids()
        window = _windows(lengths, article, tf.constant(self.sequence_length, tf.int64))
        sizes = tf.math.segment_sum(lengths, window)
        tokens = tf.RaggedTensor.from_row_lengths(tokens.values, sizes, validate=False)
        return Articles(
            tokens=tokens,
            first_lengths=sizes,
            article=tf.math.segment_min(article, window),
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
