"""Chinese text for ALBERT: words, sentences, data sets, sizes."""

from zh.segmentation import Jieba, Whitespace, segment
from zh.sentences import split_sentences
from zh.sizes import SIZES

__all__ = ["SIZES", "Jieba", "Whitespace", "segment", "split_sentences"]
