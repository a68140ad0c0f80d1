"""Words of a segmenter, and the tokens that begin them."""

import os
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from albert_tf_lite.errors import AlbertError


def word_boundaries(text: str, segmenter: Callable[[str], Iterable[str]]) -> np.ndarray:
    """Return where the words of a text begin, sorted int64 [words].

    The segmenter is called with each line that is not empty. A line break is a word.
    """
    lengths: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            words = checked_words(segmenter(line), line, f"line {number}")
            lengths += filter(None, map(len, words))
        lengths.append(1)
    # The last line has no line break. The end of the text begins no word.
    return np.cumsum([0, *lengths[:-1]], dtype=np.int64)[:-1]


def checked_words(words: Iterable[str], text: str, name: str) -> list[str]:
    """Return words as a list. Raise unless they join to the text."""
    words = list(words)
    if not all(isinstance(word, str) for word in words):
        raise TypeError(
            f"The segmenter should return strings. For {text[:50]!r} it returned "
            f"{words[:5]}."
        )
    joined = "".join(words)
    if joined != text:
        start = max(0, len(os.path.commonprefix([joined, text])) - 20)
        raise AlbertError(
            f"The segmenter changed {name}: {text[start : start + 50]!r} became "
            f"{joined[start : start + 50]!r}. Its joined words must equal the text."
        )
    return words


def tokens_that_begin_words(
    texts: Sequence[str],
    starts: np.ndarray,
    ends: np.ndarray,
    lengths: np.ndarray,
    segmenter: Callable[[str], Iterable[str]],
) -> np.ndarray:
    """Return which tokens of several texts begin a word, bool [tokens of all texts].

    `starts` and `ends` are offsets in each text, `lengths` the tokens per text. A word
    that begins within a token is joined with the word before.
    """
    if not len(starts):
        return np.zeros(0, bool)
    cuts = word_boundaries("\n".join(texts), segmenter)
    # The texts are joined by one character.
    first = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    offset = np.repeat(first, lengths)
    end_before = np.concatenate([[-1], (ends + offset)[:-1]])
    # Words that begin between the end of the token before and the start of a token.
    before = np.searchsorted(cuts, end_before, side="left")
    begins = np.searchsorted(cuts, starts + offset, side="right") > before
    begins[0] = True
    return begins
