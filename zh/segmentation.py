"""Splitting Chinese text into words."""

import functools
import hashlib
import importlib.util
import io
import os
import re
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import jieba

from albert_tf.data.files.text_lines import stream_lines
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts
from albert_tf_lite.words import checked_words

if TYPE_CHECKING:
    import rjieba


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
        encoding: optional string, the encoding of that file, such as `"gb18030"`. By
            default by its content, which for a few words does not suffice.

    Raises:
        FileNotFoundError: if the user dictionary does not exist.
        AlbertError: if the user dictionary has another encoding or no words, or a line
            is not in jieba's format, such as a row of a CSV file, whose word would
            never be found.

    Example:

    >>> zh.Jieba()("我想吃鸡蛋")
    ['我', '想', '吃', '鸡蛋']
    >>> zh.Jieba(user_dictionary=["吃鸡蛋"])("我想吃鸡蛋")
    ['我', '想', '吃鸡蛋']
    """

    def __init__(
        self,
        user_dictionary: str | os.PathLike | Iterable[str] | None = None,
        encoding: str | None = None,
    ):
        self.user_words = None
        if user_dictionary is not None:
            name = "The user dictionary"
            if isinstance(user_dictionary, str | os.PathLike):
                name = f"{name} {user_dictionary}"
                user_dictionary = stream_lines(user_dictionary, encoding)
            self.user_words = _read_dictionary(user_dictionary, name)
            _warn_of_unused_words(self.user_words, name)
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
def _rjieba() -> "rjieba.Jieba":
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


# === The user dictionary ===

# A line as jieba reads it: the word is what precedes the frequency and the tag.
_LINE = re.compile("(?P<word>.+?)(?P<frequency> [0-9]{1,15})?(?P<tag> [a-z]+)?")
# A word with one of these is several columns, or a row of another format.
_NO_WORD = re.compile(r"[\s,;，；\"|]")
_SEPARATORS = re.compile(r"[\s,;，；\"|]+")
_IDEOGRAPH = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]")
_EXAMPLE = "云原生数据库 10 n"
# Words whose use is checked, and those that a warning names.
_CHECKED, _NAMED = 10_000, 5


def _read_dictionary(dictionary: Iterable[str], name: str) -> str:
    # Excel saves a byte order mark, which the reader of files removes.
    lines = [line.strip().removeprefix("\ufeff") for line in dictionary]
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if match and _NO_WORD.search(match["word"]):
            raise AlbertError(
                f"{name} has the line {number} {line!r:.200}, which is not in jieba's "
                f"format: its word would be {match['word']!r:.200}, which no text "
                "contains as one word. Expected 'word [frequency] [tag]', separated by "
                f"one space each, such as {_in_format(line)!r}. Delete a header."
            )
    if not any(lines):
        raise AlbertError(
            f"{name} has no words. Expected lines 'word [frequency] [tag]', such as "
            f"{_EXAMPLE!r}."
        )
    return "\n".join(lines)


def _in_format(line: str) -> str:
    """Return a row of another format as jieba expects it, or an example."""
    parts = [part for part in _SEPARATORS.split(line) if part]
    words = [part for part in parts if _IDEOGRAPH.search(part)]
    if len(words) != 1:
        return _EXAMPLE
    frequencies = [part for part in parts if re.fullmatch("[0-9]+", part)]
    tags = [part for part in parts if re.fullmatch("[a-z]+", part)]
    return " ".join([words[0], *frequencies[:1], *tags[:1]])


def _warn_of_unused_words(user_words: str, name: str) -> None:
    """Warn if jieba does not even find words of a dictionary that stand alone.

    Raise if it finds none.
    """
    matches = filter(None, map(_LINE.fullmatch, user_words.split("\n")))
    # The frequency 0 removes a word.
    words = [x["word"] for x in matches if int(x["frequency"] or 1) > 0]
    # At most `_CHECKED` of them, evenly.
    every = max(-(-len(words) // _CHECKED), 1)
    words = words[::every]
    tokenizer = _jieba(user_words)
    unused = [word for word in words if tokenizer.lcut(word) != [word]]
    if not unused:
        return
    message = (
        f"{name}: jieba does not find {len(unused):,} of {len(words):,} words in it, "
        f"such as {', '.join(f'{x:.40}' for x in unused[:_NAMED])}. Their frequency "
        "is too low, or jieba separates words at one of their characters. Leave the "
        "frequency out, so that jieba chooses one that suffices."
    )
    if len(unused) == len(words):
        raise AlbertError(message)
    warnings.warn(message, stacklevel=3)


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
