"""What ALBERT needs for Chinese: words, sentences, records to pretrain on, sizes."""

from zh.pretraining import PretrainingData, make_pretraining_data
from zh.segmentation import Jieba, Whitespace, segment, word_boundaries
from zh.sentences import split_sentences
from zh.sizes import SIZES

__all__ = [
    "SIZES",
    "Jieba",
    "PretrainingData",
    "Whitespace",
    "make_pretraining_data",
    "segment",
    "split_sentences",
    "word_boundaries",
]
