"""Chinese text for ALBERT: words, sentences, data sets, sizes."""

from zh import datasets
from zh.segmentation import Jieba, Whitespace, segment
from zh.sentences import split_sentences

__all__ = ["SIZES", "Jieba", "Whitespace", "datasets", "segment", "split_sentences"]


def __getattr__(name):
    # The sizes import Keras; everything else here does not.
    if name == "SIZES":
        from zh.sizes import SIZES

        return SIZES
    raise AttributeError(f"module 'zh' has no attribute {name!r}")
