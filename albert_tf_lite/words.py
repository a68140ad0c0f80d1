"""Words of a segmenter, the tokens that begin them, and labels of those within."""

import os
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from albert_tf_lite.errors import AlbertError

# `get_new_segment` of albert_zh's `create_pretraining_data.py` marks these by `##`.
CHINESE = re.compile("[\u4e00-\u9fa5]")
_MARKED = re.compile(f"##{CHINESE.pattern}")


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


# === Labels of albert_zh ===


def marked_label_ids(tokens: Sequence[str]) -> list[int]:
    """Return the label of each token within a word, with albert_zh's `##`.

    A Chinese character has the label `##` and the character where the vocabulary has
    it. -1 is for tokens that are their own label and begin words of such.
    """
    if not has_marked_labels(tokens):
        raise AlbertError(
            "Labels with ## need a vocabulary with Chinese characters after ##, such "
            "as ##中 of albert_zh. This one has none: leave out `marked_labels=`."
        )
    ids = {token: number for number, token in enumerate(tokens)}
    return [
        ids.get(f"##{token}", number) if CHINESE.fullmatch(token) else -1
        for number, token in enumerate(tokens)
    ]


def has_marked_labels(tokens: Sequence[str]) -> bool:
    """Return whether a vocabulary has labels of Chinese characters within words."""
    return any(map(_MARKED.fullmatch, tokens))


def label_tokens(tokens: Sequence[str]) -> list[int] | None:
    """Return the token of each label; `None` without `##` labels.

    Tokenizers never return `##` and a Chinese character: each is a token alone.
    """
    if not has_marked_labels(tokens):
        return None
    plain = list(range(len(tokens)))
    for token, label in enumerate(marked_label_ids(tokens)):
        if label >= 0:
            plain[label] = token
    return plain
