"""ALBERT encoder and the sizes of its releases."""

from albert_tf.backbone.albert_backbone import SIZES, AlbertBackbone

__all__ = ["SIZES", "AlbertBackbone"]
