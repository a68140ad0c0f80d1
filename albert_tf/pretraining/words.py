"""Where the words of a text begin, by any segmenter."""

import os

import numpy as np


def word_boundaries(text, segmenter):
    """Where the words of a long text begin.

    Args:
        text: string, of many lines.
        segmenter: a function of a string that returns its words in order, such as
            `jieba.lcut`. It is called with each line that is not empty, without its
            `"\\n"`. If it has a method `boundaries`, as `zh.Jieba()` has, that is
            called with the text instead.

    Returns:
        The positions as a sorted int64 array: those of characters, 0 among them, the
        length of the text not. Every `"\\n"` is a word of its own.

    Raises:
        TypeError: if the words of the segmenter are not strings.
        ValueError: if it drops or changes characters; says in which line.
    """
    if hasattr(segmenter, "boundaries"):
        return segmenter.boundaries(text)
    lengths = np.fromiter(map(len, _words_by_line(text, segmenter)), np.int64)
    return np.cumsum(lengths) - lengths


def _words_by_line(text, segmenter):
    for number, line in enumerate(text.split("\n"), start=1):
        if number > 1:
            yield "\n"
        if line:
            words = checked_words(segmenter(line), line, f"line {number}")
            yield from filter(None, words)


def checked_words(words, text, name):
    """The words that a segmenter returned, a list, if they are all of the text."""
    words = list(words)
    try:
        joined = "".join(words)
    except TypeError:
        raise TypeError(
            f"The segmenter should return strings. For {text[:50]!r} it returned "
            f"{words[:5]}."
        ) from None
    if joined != text:
        start = max(0, len(os.path.commonprefix([joined, text])) - 20)
        raise ValueError(
            f"The segmenter changed {name}: {text[start : start + 50]!r} became "
            f"{joined[start : start + 50]!r}. Its words, joined, must give the text."
        )
    return words
