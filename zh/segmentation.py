"""Splitting Chinese text into words."""

import functools
import hashlib
import io
import itertools
import logging
import os
import pathlib
import re

import jieba
import numpy as np
from jieba import finalseg

from albert_tf.preprocessing.words import checked_words
from albert_tf_lite.errors import AlbertError


def segment(texts, segmenter=None):
    """Split each text into words.

    Args:
        texts: list of strings.
        segmenter: optional function from a string to its words in order. By default
            `zh.Jieba()`, which ignores words added to jieba's global dictionary. Pass
            `jieba.lcut` to use them.

    Returns:
        A list of lists of strings. The words of a text joined are the text.

    Raises:
        TypeError: if `texts` is a single string.
        AlbertError: if the segmenter drops or changes characters.

    Example:
    ```python
    zh.segment(["我想吃鸡蛋"])  # [["我", "想", "吃", "鸡蛋"]]
    ```
    """
    if isinstance(texts, str):
        raise TypeError("`texts` should be a list of strings, not one string.")
    segmenter = _default_segmenter() if segmenter is None else segmenter
    return [checked_words(segmenter(text), text, "the text") for text in texts]


class Jieba:
    """jieba's words, found by rjieba where it is installed.

    rjieba is about 10 times as fast. Without HMM its words are jieba's. With HMM one
    word boundary in about 2 million differs, because rjieba rounds probabilities. Each
    `"\\n"` is a separate word, where jieba joins `"\\r\\n"`. Words added to jieba's
    global dictionary or to another `Jieba` have no influence, except for words of
    frequency 0, which jieba stores globally. Instances can be pickled with their user
    dictionary. Those with the same settings have the same `repr`.

    Args:
        hmm: bool. Whether a hidden Markov model joins single characters to words that
            the dictionary lacks.
        user_dictionary: optional path of a UTF-8 file of lines
            `word [frequency] [tag]`, or the list of these lines. Requires jieba itself
            to cut.
        fast: bool. Whether to use rjieba if it is installed.

    Raises:
        FileNotFoundError: if the user dictionary does not exist.
        AlbertError: if the user dictionary is not UTF-8 or contains tabs.

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
            None if user_dictionary is None else _read_dictionary(user_dictionary)
        )
        # A function from a text to the lengths of its words, loaded when needed.
        self._engine = None

    def __getstate__(self):
        return {**self.__dict__, "_engine": None}

    def __repr__(self):
        if self._dictionary is None:
            return f"Jieba(hmm={self.hmm})"
        digest = hashlib.sha256(self._dictionary).hexdigest()
        return f"Jieba(hmm={self.hmm}, user_dictionary=<sha256 {digest[:16]}>)"

    def __call__(self, text):
        """Return the words of a text as a list of strings."""
        bounds = itertools.pairwise([*self.boundaries(text).tolist(), len(text)])
        return [text[start:end] for start, end in bounds]

    def boundaries(self, text):
        """Return the positions where words begin, a sorted int64 array.

        Args:
            text: string, of any number of lines.
        """
        self._engine = self._engine or self._load_engine()
        lengths = np.fromiter(self._engine(text), np.int64)
        return np.cumsum(lengths) - lengths

    def _load_engine(self):
        rust = _load_rjieba() if self.fast and self._dictionary is None else None
        if rust is not None:
            return functools.partial(_rjieba_lengths, rust, self.hmm)
        if self._dictionary is None:
            tokenizer = _shared_tokenizer()
        else:
            tokenizer = _new_tokenizer()
            tokenizer.load_userdict(io.BytesIO(self._dictionary))
        return functools.partial(_jieba_lengths, tokenizer, self.hmm)


# === rjieba ===

# jieba searches its dictionary in blocks of these characters. rjieba takes more of
# them for Chinese, and with HMM it cuts blocks with symbols differently.
_OUTSIDE_BLOCKS = re.compile("[^\u4e00-\u9fd5a-zA-Z0-9+#&._%-]")
_SYMBOL_BLOCK = re.compile(
    "((?<![\u4e00-\u9fd5a-zA-Z0-9])[\u4e00-\u9fd5a-zA-Z0-9]*[+#&._%-]"
    "[\u4e00-\u9fd5a-zA-Z0-9+#&._%-]*)"
)


def _load_rjieba():
    """Return an rjieba with a private dictionary, or None if it is not installed."""
    try:
        import rjieba
    except ImportError:
        return None
    rust = rjieba.Jieba()
    # jieba counts B超 twice in the total frequency, which decides between equally
    # probable cuts such as 一 + 一一 and 一一 + 一. Make the totals equal.
    rust.add_word("\n", 3, None)
    return rust


def _rjieba_lengths(rust, hmm, text):
    """Yield the lengths of the words of a text."""
    parts = _SYMBOL_BLOCK.split(_OUTSIDE_BLOCKS.sub("\n", text))
    for i, part in enumerate(parts):
        has_symbols = hmm and i % 2
        words = _words_with_symbols(rust, part) if has_symbols else rust.cut(part, hmm)
        yield from map(len, words)


def _words_with_symbols(rust, block):
    """Yield the words of a block that contains symbols."""
    # Characters in which the dictionary search found no longer word.
    run = ""
    for word in rust.cut(block, False):
        # Without HMM letters and digits are joined.
        if len(word) == 1 or word.isascii() and word.isalnum():
            run += word
            continue
        yield from _unknown_words(rust, run)
        yield word
        run = ""
    yield from _unknown_words(rust, run)


def _unknown_words(rust, run):
    """Return the words that an HMM finds in a run of characters."""
    if len(run) < 2 or run.isascii() and run.isalnum():
        return [run] if run else []
    if run.isalpha() and not run.isascii():
        return rust.cut(run, True)
    # rjieba cuts numbers and symbols differently, such as 30-140.
    return finalseg.cut(run)


# === jieba ===


def _jieba_lengths(tokenizer, hmm, text):
    """Yield the lengths of the words of a text."""
    for word in tokenizer.cut(text, HMM=hmm):
        yield from (1, 1) if word == "\r\n" else (len(word),)


def _new_tokenizer():
    """Return a tokenizer with jieba's dictionary (100 MB), loaded without logging."""
    tokenizer = jieba.Tokenizer()
    level = jieba.default_logger.level
    jieba.setLogLevel(logging.WARNING)
    try:
        tokenizer.initialize()
    finally:
        jieba.setLogLevel(level)
    return tokenizer


# Not `jieba.dt`, to which a program may have added words.
_shared_tokenizer = functools.cache(_new_tokenizer)


def _read_dictionary(dictionary):
    """Return the bytes of a user dictionary, which is a file or a list of lines."""
    if isinstance(dictionary, str | os.PathLike):
        name, path = f"The user dictionary {dictionary}", pathlib.Path(dictionary)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no user dictionary {dictionary}. Expected a file with one "
                "word per line, or a list of words."
            )
        data = path.read_bytes()
    else:
        name, data = "The user dictionary", "\n".join(dictionary).encode()
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise AlbertError(
            f"{name} is not UTF-8: {error}. If it is GBK or GB18030, convert it: iconv "
            "-f GB18030 -t UTF-8."
        ) from error
    for number, line in enumerate(lines, start=1):
        # jieba would take the whole line as the word.
        if "\t" in line.strip():
            raise AlbertError(
                f"{name} has a tab in line {number}: {line.strip()!r}. Expected "
                "'word [frequency] [tag]', separated by one space each."
            )
    return data


class Whitespace:
    """Words of text that is already separated by white space.

    A run of white space (as `str.split` defines it) is a word, too, so that the words
    joined are the text. Tokenizers drop it.

    Example:
    ```python
    zh.Whitespace()("我 想 吃  鸡蛋")  # ["我", " ", "想", " ", "吃", "  ", "鸡蛋"]
    ```
    """

    def __repr__(self):
        return "Whitespace()"

    def __call__(self, text):
        """Return the words of a text as a list of strings."""
        return _WORDS.findall(text)

    def boundaries(self, text):
        """Return the positions where words and white space begin, an int64 array."""
        return np.fromiter((x.start() for x in _WORDS.finditer(text)), np.int64)


# White space as for `str.split`. Each line end is a separate word.
_WORDS = re.compile(r"\n|[^\S\n]+|\S+")


@functools.cache
def _default_segmenter():
    return Jieba()
