"""ALBERT models: the backbone, and a model a task."""

from albert_tf.models.albert_backbone import AlbertBackbone
from albert_tf.models.albert_pretrainer import AlbertPretrainer
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.sizes import SIZES

__all__ = ["SIZES", "AlbertBackbone", "AlbertPretrainer", "AlbertTextClassifier"]
