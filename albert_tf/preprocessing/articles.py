"""Articles as lists of sentences."""

import math
import re
from collections.abc import Sequence

import tensorflow as tf

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts

# White space between sentences, which belongs to none.
WHITE_SPACE = " \t\r\n\u3000"
# Has the same meaning for Python and RE2. A dot counts before white space only.
_END = (
    rf"[。！？!?…\n]+[”’」』）】\"')\]]*[{WHITE_SPACE}]*"
    rf"|\.[”’\"')\]]*[{WHITE_SPACE}]+"
)
_SENTENCE = re.compile(rf"(?s).*?(?:{_END})|.+")
# Noncharacters, which are not meant for text.
_CUT, _OTHER = "\ufdd0", "\ufdd1"


def split_sentences(text: str) -> list[str]:
    """Split a text at the ends of its sentences.

    A sentence ends after 。！？!?… with the quotes and brackets that close there, after
    a dot before white space, and at a line break. White space after it belongs to it.
    `zh.split_sentences` knows more cases; tasks take its sentences as well.

    Returns:
        A list of strings whose concatenation is the text; `[""]` for `""`.
    """
    return _SENTENCE.findall(text) or [""]


def split_sentences_in_graph(texts: tf.Tensor) -> tf.RaggedTensor:
    """Split strings [batch] like `split_sentences`, to [batch, (sentences)]."""
    marked = tf.strings.regex_replace(texts, _CUT, _OTHER)
    marked = tf.strings.regex_replace(marked, f"({_END})", rf"\1{_CUT}")
    # No empty sentence after the last one.
    marked = tf.strings.regex_replace(marked, f"{_CUT}$", "")
    return tf.strings.split(marked, _CUT)


def sentences_of(articles: object) -> list[list[str]]:
    """Return the sentences of articles, each a string or a list of its sentences."""
    if isinstance(articles, tuple):
        raise AlbertError("`x` should be a list of articles. Received a tuple.")
    split = []
    for position, article in enumerate(as_texts(articles, "x")):
        sentences = article
        if isinstance(article, str):
            sentences = split_sentences(article)
        if not sentences or not all(isinstance(x, str) for x in sentences):
            raise AlbertError(
                "An article should be a string, or a list of at least one sentence. "
                f"Article {position} is {str(article)[:80]!r}."
            )
        split.append(sentences)
    return split


def choose_sentences(
    sentences: Sequence[str],
    scores: Sequence[float],
    count: int = 3,
    max_characters: int | None = None,
) -> list[int]:
    """Return the positions of the sentences with the highest scores, in text order.

    Blank sentences, and those that do not fit in `max_characters`, are skipped.
    """
    left = math.inf if max_characters is None else max_characters
    chosen: list[int] = []
    for i in sorted(range(len(sentences)), key=lambda i: -scores[i]):
        length = len(sentences[i].strip(WHITE_SPACE))
        if 0 < length <= left and len(chosen) < count:
            chosen.append(i)
            left -= length
    return sorted(chosen)


def sentence_bounds(sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of each sentence in the article, without white space."""
    bounds, start = [], 0
    for sentence in sentences:
        first = start + len(sentence) - len(sentence.lstrip(WHITE_SPACE))
        bounds.append((first, first + len(sentence.strip(WHITE_SPACE))))
        start += len(sentence)
    return bounds
