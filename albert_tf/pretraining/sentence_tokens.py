"""Documents into sentences of tokens, with the words that the segmenter cut."""

import itertools

import numpy as np
import tensorflow as tf

from albert_tf.pretraining.segment_pairs import Sentences
from albert_tf.pretraining.words import word_boundaries

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
        tokens, starts, ends, splits = self._tokens(rows)
        word_starts = np.ones(len(tokens), bool)
        if self._segmenter is not None:
            cuts = word_boundaries("\n".join(rows), self._segmenter)
            word_starts = begins_word(starts, ends, cuts)
        bounds = np.cumsum([0, *map(len, sentences)])
        documents = [
            self._divided(np.unique(splits[begin : end + 1]), word_starts)
            for begin, end in itertools.pairwise(bounds)
        ]
        return Sentences(tokens, word_starts, [x for x in documents if len(x) > 1])

    def _tokens(self, rows):
        """Ids of all rows, their offsets in the joined text, and where rows begin."""
        parts = [
            self._tokenize(tf.constant(rows[i : i + CHUNK], tf.string))
            for i in range(0, max(len(rows), 1), CHUNK)
        ]
        tokens, starts, ends = (
            np.concatenate([part[i].flat_values.numpy() for part in parts])
            for i in range(3)
        )
        lengths = np.concatenate([part[0].row_lengths().numpy() for part in parts])
        # The rows are joined by one character.
        first = np.cumsum([0, *(len(row) + 1 for row in rows[:-1])])[: len(rows)]
        offset = np.repeat(first, lengths)
        splits = np.concatenate([[0], np.cumsum(lengths)])
        return tokens.astype("int32"), starts + offset, ends + offset, splits

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


def begins_word(starts, ends, cuts):
    """Which tokens begin a word.

    A token, of the characters from `starts` to `ends`, begins one if a word begins (in
    `cuts`, sorted) between the end of the token before it and its own start. A word
    that begins within a token is no cut: both are one word then.
    """
    if not len(starts):
        return np.zeros(0, bool)
    end_before = np.concatenate([[-1], ends[:-1]])
    before = np.searchsorted(cuts, end_before, side="left")
    begins = np.searchsorted(cuts, starts, side="right") > before
    begins[0] = True
    return begins
