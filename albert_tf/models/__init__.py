"""The models: a task a file, on `AlbertBackbone`."""

from albert_tf.backbone import SIZES, AlbertBackbone
from albert_tf.models.albert_pretrainer import AlbertPretrainer
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.albert_text_regressor import AlbertTextRegressor
from albert_tf.models.albert_token_classifier import AlbertTokenClassifier

__all__ = [
    "SIZES",
    "AlbertBackbone",
    "AlbertPretrainer",
    "AlbertTextClassifier",
    "AlbertTextRegressor",
    "AlbertTokenClassifier",
]
