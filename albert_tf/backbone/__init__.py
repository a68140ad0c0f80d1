"""ALBERT encoder and the sizes of its releases."""

from albert_tf.backbone.albert_backbone import SIZES, AlbertBackbone
from albert_tf.backbone.precision import Precision, choose_precision

__all__ = ["SIZES", "AlbertBackbone", "Precision", "choose_precision"]
