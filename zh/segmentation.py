"""Splitting Chinese text into words."""

import functools
import hashlib
import itertools
import re

import numpy as np

from zh.fast_jieba import fast_boundaries, load_rjieba
from zh.plain_jieba import PlainBoundaries, read_dictionary

# Characters that are cut at once: enough for NumPy, little enough for the cache.
PIECE = 2**17


def segment(texts, segmenter=None):
    """Split each text into words.

    Args:
        texts: list of strings.
        segmenter: optional function of a string that returns its words in
            order. By default `zh.Jieba()`, which does not know what was added to
            jieba's global dictionary: for that give `jieba.lcut`.

    Returns:
        A list of lists of strings; the words of a text joined give the text.

    Raises:
        TypeError: if `texts` is one string rather than several.
        AlbertError: if the segmenter drops or changes characters.

    Example:
    ```python
    zh.segment(["我想吃鸡蛋"])  # [["我", "想", "吃", "鸡蛋"]]
    ```
    """
    if isinstance(texts, str):
        raise TypeError("`texts` should be a list of strings, not one string.")
    segmenter = _default_segmenter() if segmenter is None else segmenter
    if isinstance(segmenter, Jieba):
        return segmenter.segment(texts)
    # Imports TensorFlow, which `Jieba` does not need.
    from albert_tf.preprocessing.words import checked_words

    return [checked_words(segmenter(text), text, "the text") for text in texts]


class Jieba:
    """jieba's words, by rjieba's dictionary search where it is installed.

    The words are those of `jieba.Tokenizer().lcut(text, HMM=hmm)`, with the user
    dictionary loaded; rjieba finds them ten times as fast. Only "\\r\\n", one word for
    jieba, is two here. What was added to jieba's global dictionary, or to another
    `Jieba`, has no influence, but for words of frequency 0, which jieba keeps for all
    together. May be pickled, with its user dictionary: another process needs no file.
    The `repr` of two is the same if their words are.

    Args:
        hmm: bool. Whether jieba's hidden Markov model joins the characters that
            the dictionary left alone, so as to find words it does not have.
        user_dictionary: optional string or path of a UTF-8 file of lines
            `word [frequency] [tag]`, or the list of these lines, such as of words.
            jieba itself then cuts.
        fast: bool. Whether rjieba is used where it can be.

    Raises:
        FileNotFoundError: if the user dictionary does not exist.
        AlbertError: if the user dictionary is not UTF-8, or separates by tabs.

    Example:
    ```python
    zh.Jieba()("我想吃鸡蛋")  # ["我", "想", "吃", "鸡蛋"]
    zh.Jieba(user_dictionary=["吃鸡蛋"])("我想吃鸡蛋")  # ["我", "想", "吃鸡蛋"]
    ```
    """

    def __init__(self, hmm=True, user_dictionary=None, fast=True):
        self.hmm = hmm
        self.fast = fast
        self._dictionary = (
            None if user_dictionary is None else read_dictionary(user_dictionary)
        )
        # A function of a text that returns where its words begin, loaded when needed.
        self._engine = None

    def __getstate__(self):
        return {**self.__dict__, "_engine": None}

    def __repr__(self):
        if self._dictionary is None:
            return f"Jieba(hmm={self.hmm})"
        digest = hashlib.sha256(self._dictionary).hexdigest()
        return f"Jieba(hmm={self.hmm}, user_dictionary=<sha256 {digest[:16]}>)"

    def __call__(self, text):
        """The words of a text, a list of strings."""
        return self.segment([text])[0]

    def segment(self, texts):
        """The words of each text, found for all texts at once.

        Args:
            texts: strings, in any iterable.

        Returns:
            A list of lists of strings.
        """
        texts = list(texts)
        joined = "\n".join(texts)
        starts = self.boundaries(joined)
        words = _cut_at(joined, starts)
        ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
        found, first = [], 0
        # Without the line end between a text and the next.
        for end in np.searchsorted(starts, ends - 1).tolist():
            found.append(words[first:end])
            first = end + 1
        return found

    def boundaries(self, text):
        """Where the words of a long text begin.

        Args:
            text: string, of many lines.

        Returns:
            The positions as an int64 array, in order: those of characters, 0 among
            them, the length of the text not. Every `"\\n"` is a word of its own,
            after `"\\r"` too.
        """
        self._engine = self._engine or self._load_engine()
        found = [np.zeros(0, np.int64)]
        start = 0
        while start < len(text):
            # No word of jieba's crosses a line end, or depends on what is beyond.
            end = text.find("\n", start + PIECE) + 1 or len(text)
            found.append(start + self._engine(text[start:end]))
            start = end
        return np.concatenate(found)

    def _load_engine(self):
        rust = load_rjieba() if self.fast and self._dictionary is None else None
        if rust is None:
            return PlainBoundaries(self._dictionary, self.hmm)
        return functools.partial(fast_boundaries, rust, self.hmm)


class Whitespace:
    """The words of text that is separated by white space already.

    A run of white space (what `str.split` splits at) between words is a word of
    its own, so that the words joined give the text; a tokenizer drops it.

    Example:
    ```python
    zh.Whitespace()("我 想 吃  鸡蛋")  # ["我", " ", "想", " ", "吃", "  ", "鸡蛋"]
    ```
    """

    def __repr__(self):
        return "Whitespace()"

    def __call__(self, text):
        """The words of a text, a list of strings."""
        return _WORDS.findall(text)

    def boundaries(self, text):
        """Where the words and the white space begin, as `Jieba.boundaries`."""
        return np.fromiter((x.start() for x in _WORDS.finditer(text)), np.int64)


# What `str.split` splits at; every line end by itself.
_WORDS = re.compile(r"\n|[^\S\n]+|\S+")


@functools.cache
def _default_segmenter():
    return Jieba()


def _cut_at(text, starts):
    bounds = itertools.pairwise([*starts.tolist(), len(text)])
    return [text[start:end] for start, end in bounds]
