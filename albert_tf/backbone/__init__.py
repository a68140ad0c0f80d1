"""ALBERT encoder and the sizes of its releases."""

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.backbone.sizes import SIZES

__all__ = ["SIZES", "AlbertBackbone"]
