"""What ALBERT needs for Chinese: words, sentences, sizes."""

from zh.segmentation import Jieba, Whitespace, WordBoundaries, segment, word_boundaries
from zh.sentences import split_sentences
from zh.sizes import SIZES

__all__ = [
    "SIZES",
    "Jieba",
    "Whitespace",
    "WordBoundaries",
    "segment",
    "split_sentences",
    "word_boundaries",
]
