"""What ALBERT needs for Chinese: words, sentences, and the sizes of the releases."""

from zh.segmentation import Jieba, Whitespace, segment, word_boundaries
from zh.sentences import split_sentences
from zh.sizes import SIZES

__all__ = [
    "SIZES",
    "Jieba",
    "Whitespace",
    "segment",
    "split_sentences",
    "word_boundaries",
]
