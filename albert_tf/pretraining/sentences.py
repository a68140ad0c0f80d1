"""Turn documents into sentences of tokens and find where words begin."""

import dataclasses
import itertools
from collections.abc import Callable

import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.words import tokens_that_begin_words

# Rows per tokenizer call: more take memory, fewer take time.
CHUNK = 512


@dataclasses.dataclass(frozen=True)
class Sentences:
    """The tokenized sentences of several documents.

    Args:
        tokens: int32 array [tokens], all sentences in order.
        word_starts: bool array [tokens], true where a word begins.
        documents: list of int arrays [sentences + 1]: the index in `tokens` at which
            each sentence of a document begins, then the end of the last.
    """

    tokens: np.ndarray
    word_starts: np.ndarray
    documents: list[np.ndarray]


class SentenceTokenizer:
    """Tokenize documents and find where their words begin.

    Without a segmenter each token is a word; without `split_sentences` each line is a
    sentence. A sentence of more than `longest` tokens is divided between two words.
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        segmenter: Callable[[str], list[str]] | None,
        split_sentences: Callable[[str], list[str]] | None,
        longest: int,
    ):
        self._segmenter = segmenter
        self._split_sentences = split_sentences or (lambda line: [line])
        self._longest = longest
        self._tokenize = tf.function(
            tokenizer.tokenize_with_offsets,
            input_signature=[tf.TensorSpec([None], tf.string)],
        )

    def __call__(self, documents: list[list[str]]) -> Sentences:
        """Return the `Sentences` of lists of lines, without empty documents."""
        sentences = [
            [sentence for line in lines for sentence in self._split_sentences(line)]
            for lines in documents
        ]
        rows = list(itertools.chain.from_iterable(sentences))
        tokens, starts, ends, lengths = self._tokens(rows)
        splits = np.concatenate([[0], np.cumsum(lengths)])
        word_starts = np.ones(len(tokens), bool)
        if self._segmenter is not None:
            word_starts = tokens_that_begin_words(
                rows, starts, ends, lengths, self._segmenter
            )
        bounds = np.cumsum([0, *map(len, sentences)])
        found = [
            self._divided(np.unique(splits[begin : end + 1]), word_starts)
            for begin, end in itertools.pairwise(bounds)
        ]
        return Sentences(tokens, word_starts, [x for x in found if len(x) > 1])

    def _tokens(self, rows: list[str]) -> tuple[np.ndarray, ...]:
        """Return ids, starts and ends of all tokens, and the tokens per row."""
        parts = [
            self._tokenize(tf.constant(rows[i : i + CHUNK], tf.string))
            for i in range(0, max(len(rows), 1), CHUNK)
        ]
        tokens, starts, ends = (
            np.concatenate([part[i].flat_values.numpy() for part in parts])
            for i in range(3)
        )
        lengths = np.concatenate([part[0].row_lengths().numpy() for part in parts])
        return tokens.astype("int32"), starts, ends, lengths

    def _divided(self, bounds: np.ndarray, word_starts: np.ndarray) -> np.ndarray:
        """Return the bounds of a document's sentences with long ones divided."""
        more: list[int] = []
        for start, length in zip(bounds[:-1], np.diff(bounds), strict=True):
            if length > self._longest:
                parts = -(-length // self._longest)
                wanted = start + length * np.arange(1, parts) // parts
                cuts = start + np.flatnonzero(word_starts[start : start + length])
                nearest = np.searchsorted(cuts, wanted)
                more.extend(cuts[nearest[nearest < len(cuts)]])
        return np.union1d(bounds, more).astype("int64") if more else bounds
