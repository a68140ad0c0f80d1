"""Where the words of a text begin, by any segmenter, and which tokens begin one."""

import os

import numpy as np

from albert_tf_lite.errors import AlbertError


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
        AlbertError: if it drops or changes characters; says in which line.
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
        raise AlbertError(
            f"The segmenter changed {name}: {text[start : start + 50]!r} became "
            f"{joined[start : start + 50]!r}. Its words, joined, must give the text."
        )
    return words


def tokens_that_begin_words(rows, starts, ends, lengths, segmenter):
    """Which tokens of some texts begin a word.

    Args:
        rows: list of strings, the texts.
        starts, ends: int arrays, the characters of each token in its text, the tokens
            of all texts one after the other.
        lengths: int array, the tokens of each text.
        segmenter: as for `word_boundaries`, which is called once, for all.

    Returns:
        A bool array, as long as `starts`.
    """
    cuts = word_boundaries("\n".join(rows), segmenter)
    # The rows are joined by one character.
    first = np.cumsum([0, *(len(row) + 1 for row in rows[:-1])])[: len(rows)]
    offset = np.repeat(first, lengths)
    return begins_word(starts + offset, ends + offset, cuts)


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
