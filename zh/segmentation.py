"""Splitting Chinese text into words."""

import functools
import hashlib
import importlib.util
import io
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import jieba

from albert_tf.data.reading import stream_lines
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts
from albert_tf_lite.words import checked_words


class Jieba:
    """jieba's words, found by rjieba where it is installed.

    rjieba is more than 10 times as fast. Its words are those of jieba, except that
    it does not split numbers and words with symbols, such as `30-140`. Words added
    to jieba's global dictionary have no influence. Instances with the same words have
    the same `repr`.

    Args:
        user_dictionary: optional path of a file of lines `word [frequency] [tag]` in
            UTF-8 or, with a warning, in GB18030 or UTF-16, or the list of these lines.
            Read by jieba itself, which then finds the words.

    Raises:
        FileNotFoundError: if the user dictionary does not exist.
        AlbertError: if the user dictionary has another encoding or contains tabs.

    Example:

    >>> zh.Jieba()("我想吃鸡蛋")
    ['我', '想', '吃', '鸡蛋']
    >>> zh.Jieba(user_dictionary=["吃鸡蛋"])("我想吃鸡蛋")
    ['我', '想', '吃鸡蛋']
    """

    def __init__(
        self,
        user_dictionary: str | os.PathLike | Iterable[str] | None = None,
    ):
        self.user_words = None
        if user_dictionary is not None:
            self.user_words = _read_dictionary(user_dictionary)
        is_installed = importlib.util.find_spec("rjieba") is not None
        self.fast = is_installed and self.user_words is None

    def __repr__(self) -> str:
        if self.user_words is None:
            return f"Jieba(fast={self.fast})"
        digest = hashlib.sha256(self.user_words.encode()).hexdigest()
        return f"Jieba(user_dictionary=<sha256 {digest[:16]}>)"

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text."""
        if self.fast:
            return _rjieba().cut(text)
        return _jieba(self.user_words or "").lcut(text)


# The dictionaries are outside the instances, which can be pickled and share them.
@functools.cache
def _rjieba() -> Any:
    import rjieba

    return rjieba.Jieba()


@functools.lru_cache(2)
def _jieba(user_words: str) -> jieba.Tokenizer:
    # Not `jieba.dt`, to which a program may have added words. Nor its cache, which is
    # as slow, and a file that anyone can write in the folder for temporary files.
    tokenizer = jieba.Tokenizer()
    words = tokenizer.get_dict_file()
    # `initialize` would log this to standard error.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(words)
    tokenizer.initialized = True
    tokenizer.load_userdict(io.StringIO(user_words))
    return tokenizer


def _read_dictionary(dictionary: str | os.PathLike | Iterable[str]) -> str:
    name = "The user dictionary"
    if isinstance(dictionary, str | os.PathLike):
        name = f"{name} {dictionary}"
        dictionary = stream_lines(dictionary)
    lines = list(dictionary)
    for number, line in enumerate(lines, start=1):
        # jieba would take the whole line as the word.
        if "\t" in line.strip():
            raise AlbertError(
                f"{name} has a tab in line {number}: {line.strip()!r}. Expected "
                "'word [frequency] [tag]', separated by one space each."
            )
    return "\n".join(lines)


class Whitespace:
    """Words of text that is already separated by white space.

    A run of white space is a word, too, so that the words joined are the text.

    Example:

    >>> zh.Whitespace()("我 想 吃  鸡蛋")
    ['我', ' ', '想', ' ', '吃', '  ', '鸡蛋']
    """

    def __repr__(self) -> str:
        return "Whitespace()"

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text and the white space between them."""
        return re.findall(r"\s+|\S+", text)


def segment(
    texts: Iterable[str], segmenter: Callable[[str], Iterable[str]] | None = None
) -> list[list[str]]:
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

    >>> zh.segment(["我想吃鸡蛋"])
    [['我', '想', '吃', '鸡蛋']]
    """
    if isinstance(texts, str):
        raise TypeError("`texts` should be a list of strings, not one string.")
    texts = as_texts(texts)
    segmenter = segmenter or Jieba()
    return [checked_words(segmenter(text), text, "the text") for text in texts]
