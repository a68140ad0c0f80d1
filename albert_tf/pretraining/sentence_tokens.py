"""Documents into sentences of tokens, with the words that the segmenter cut."""

import itertools

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.words import tokens_that_begin_words
from albert_tf.pretraining.segment_pairs import Sentences

# Rows tokenized at a time: more take memory, fewer take time.
CHUNK = 512


class SentenceTokenizer:
    """Tokenizes documents and says where their words begin.

    Without a segmenter each token is a word, without `split_sentences` each line a
    sentence. A sentence of more tokens than `longest` is divided between two words.
    """

    def __init__(self, tokenizer, segmenter, split_sentences, longest):
        self._segmenter = segmenter
        self._split_sentences = split_sentences or (lambda line: [line])
        self._longest = longest
        self._tokenize = tf.function(
            tokenizer.tokenize_with_offsets,
            input_signature=[tf.TensorSpec([None], tf.string)],
        )

    def __call__(self, documents):
        """The `Sentences` of documents, lists of lines; without those of no token."""
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
        documents = [
            self._divided(np.unique(splits[begin : end + 1]), word_starts)
            for begin, end in itertools.pairwise(bounds)
        ]
        return Sentences(tokens, word_starts, [x for x in documents if len(x) > 1])

    def _tokens(self, rows):
        """Ids of all rows, their offsets in these, and how many each row has."""
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

    def _divided(self, bounds, word_starts):
        """The bounds of a document's sentences, and those that divide long ones."""
        lengths = np.diff(bounds)
        more = []
        for start, length in zip(bounds[:-1], lengths, strict=True):
            if length > self._longest:
                parts = -(-length // self._longest)
                wanted = start + length * np.arange(1, parts) // parts
                cuts = start + np.flatnonzero(word_starts[start : start + length])
                nearest = np.searchsorted(cuts, wanted)
                more.extend(cuts[nearest[nearest < len(cuts)]])
        return np.union1d(bounds, more).astype("int64") if more else bounds
