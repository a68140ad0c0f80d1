"""What ALBERT needs for Chinese: words, and the sizes of the Chinese releases."""

from zh.segmentation import segment
from zh.sizes import SIZES

__all__ = ["SIZES", "segment"]
