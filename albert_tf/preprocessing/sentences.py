"""Articles as their sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from albert_tf_lite.errors import AlbertError

# What separates sentences and belongs to none.
WHITE_SPACE = " \t\r\n\u3000"
# Read alike by Python's engine and TensorFlow's. A dot counts before white space only.
_END = (
    rf"[。！？!?…\n]+[”’」』）】\"')\]]*[{WHITE_SPACE}]*"
    rf"|\.[”’\"')\]]*[{WHITE_SPACE}]+"
)
_END_PATTERN = re.compile(_END)
# Two code points that Unicode keeps free of characters.
_CUT, _OTHER = "\ufdd0", "\ufdd1"


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, by their end marks.

    A sentence ends after 。！？!?… and the quotes and brackets that close there, after
    a dot before white space, and at a line break. White space after it belongs to it.
    `zh.split_sentences` knows more cases; tasks take its sentences as well.

    Returns:
        A list of strings that joined give the text; of `""` one empty string.
    """
    ends = [match.end() for match in _END_PATTERN.finditer(text)]
    bounds = [0, *ends, *([len(text)] if not ends or ends[-1] < len(text) else [])]
    return [text[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def split_sentences_in_graph(texts: tf.Tensor) -> tf.RaggedTensor:
    """`split_sentences` of strings [batch]: strings [batch, (sentences)]."""
    marked = tf.strings.regex_replace(texts, _CUT, _OTHER)
    marked = tf.strings.regex_replace(marked, f"({_END})", rf"\1{_CUT}")
    # None after the last one.
    marked = tf.strings.regex_replace(marked, f"{_CUT}$", "")
    return tf.strings.split(marked, _CUT)


def sentences_of(articles: Any) -> list[list[str]]:
    """The sentences of each article, which is a string or a list of its sentences.

    Raises:
        AlbertError: if an article is neither, or a list without a sentence.
    """
    if isinstance(articles, tuple):
        raise AlbertError("`x` should be a list of articles. Received a tuple.")
    if tf.is_tensor(articles):
        articles = articles.numpy()
    rows = []
    for position, article in enumerate(articles):
        if isinstance(article, bytes):
            article = article.decode("utf-8", "ignore")
        row = split_sentences(article) if isinstance(article, str) else list(article)
        if not row or not all(isinstance(sentence, str) for sentence in row):
            raise AlbertError(
                "An article should be a string, or a list of its sentences, one at "
                f"least. Article {position} is {str(article)[:80]!r}."
            )
        rows.append(row)
    return rows


def choose_sentences(
    sentences: Sequence[str],
    scores: Sequence[float],
    count: int = 3,
    max_characters: int | None = None,
) -> list[int]:
    """The positions of the sentences with the highest scores, in the order of the text.

    Args:
        sentences: strings. Those of white space alone are not chosen.
        scores: floats, one a sentence.
        count: int. Most sentences.
        max_characters: optional int. Most characters of all that are chosen, without
            the white space around each; what does not fit is passed over.
    """
    left = float("inf") if max_characters is None else max_characters
    chosen = []
    for i in sorted(range(len(sentences)), key=lambda i: -scores[i]):
        length = len(sentences[i].strip(WHITE_SPACE))
        if 0 < length <= left and len(chosen) < count:
            chosen.append(i)
            left -= length
    return sorted(chosen)


def sentence_bounds(sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Where each sentence begins and ends in the article, without white space."""
    bounds, start = [], 0
    for sentence in sentences:
        first = start + len(sentence) - len(sentence.lstrip(WHITE_SPACE))
        bounds.append((first, first + len(sentence.strip(WHITE_SPACE))))
        start += len(sentence)
    return bounds
