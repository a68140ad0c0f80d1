from __future__ import annotations

import dataclasses
from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.packed_texts import PackedTexts
from albert_tf.preprocessing.sentences import sentences_of, split_sentences_in_graph
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import as_segments, as_string_tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class Articles(PackedTexts):
    """Articles in windows of whole sentences: `[CLS] a [SEP] [CLS] b [SEP]`.

    Attributes:
        window: int64 tensor [sentences of all articles], the window of each.
        place: int64 tensor [sentences], the position of its [CLS] in the window.
        article: int64 tensor [windows], the article of each.
    """

    window: tf.Tensor
    place: tf.Tensor
    article: tf.Tensor

    @property
    def examples(self):
        return self.article

    @property
    def positions(self) -> tf.Tensor:
        """Of each sentence's [CLS] among the tokens of all windows, int64."""
        return tf.gather(self.tokens.row_starts(), self.window) + self.place


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSummarizerPreprocessor(AlbertTextClassifierPreprocessor):
    """Articles in, what `AlbertBackbone` takes out: each sentence begins with [CLS].

    An article is a string, split at the ends of sentences, or the list of its
    sentences. As many whole sentences as fit are one window, so that each sentence is
    read once, among its neighbours; a sentence longer than a window is cut. Called on
    strings it gives the first window of each article; `pack_texts` reads it all.

    Args:
        tokenizer: a `WordPieceTokenizer` or a `SentencePieceTokenizer`.
        sequence_length: int. Most tokens of a window, the special ones included.
        padding, pad_to_multiple_of: as for `AlbertTextClassifierPreprocessor`.

    Reference:
        [BertSum](https://arxiv.org/abs/1908.08345), section 3.1, without its
        segments by turns.
    """

    def pack(self, x: Any) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The first window of each article; what `SegmentPacker.pack` gives."""
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
        window = _windows(lengths, article, self.sequence_length)
        sizes = tf.math.segment_sum(lengths, window)
        tokens = tf.RaggedTensor.from_row_lengths(tokens.values, sizes, validate=False)
        place = tf.cumsum(lengths, exclusive=True)
        place -= tf.gather(tokens.row_starts(), window)
        return Articles(
            tokens=tokens,
            first_lengths=sizes,
            window=window,
            place=place,
            article=tf.math.segment_min(article, window),
        )


@tf.function(
    input_signature=[
        tf.TensorSpec([None], tf.int64),
        tf.TensorSpec([None], tf.int64),
        tf.TensorSpec([], tf.int64),
    ]
)
def _windows(lengths, article, size):
    """The window of each sentence: as many of an article as fit."""

    def step(state, sentence):
        used, window, before = state
        length, article = sentence
        begins = (used + length > size) | (article != before)
        used = tf.where(begins, length, used + length)
        return used, window + tf.cast(begins, tf.int64), article

    start = tf.constant(0, tf.int64), tf.constant(-1, tf.int64)
    return tf.scan(step, (lengths, article), (*start, tf.constant(-1, tf.int64)))[1]
