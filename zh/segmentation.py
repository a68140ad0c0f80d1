"""Splitting Chinese text into words."""

import jieba


def segment(texts, segmenter=None):
    """Split each text into words.

    Args:
        texts: list of strings.
        segmenter: optional function of a string that returns its words in
            order. By default jieba with its HMM for unknown words.

    Returns:
        A list of lists of strings; the words of a text joined give the text.

    Raises:
        TypeError: if `texts` is one string rather than several.
        ValueError: if the segmenter drops or changes characters.

    Example:
    ```python
    zh.segment(["我想吃鸡蛋"])  # [["我", "想", "吃", "鸡蛋"]]
    ```
    """
    if isinstance(texts, str):
        raise TypeError("`texts` should be a list of strings, not one string.")
    segmenter = segmenter or jieba.lcut
    return [_checked(list(segmenter(text)), text) for text in texts]


def _checked(words, text):
    if "".join(words) != text:
        raise ValueError(
            f"The segmenter changed the text: {text[:50]!r} became "
            f"{''.join(words)[:50]!r}. Its words, joined, must give the text."
        )
    return words
