"""The models: a task a file, on `AlbertBackbone`."""

from albert_tf.backbone import SIZES, AlbertBackbone
from albert_tf.models.albert_masked_lm import AlbertMaskedLM
from albert_tf.models.albert_pretrainer import AlbertPretrainer
from albert_tf.models.albert_sentence_order import AlbertSentenceOrder
from albert_tf.models.albert_spelling_corrector import AlbertSpellingCorrector
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.albert_text_embedder import AlbertTextEmbedder
from albert_tf.models.albert_text_regressor import AlbertTextRegressor

__all__ = [
    "SIZES",
    "AlbertBackbone",
    "AlbertMaskedLM",
    "AlbertPretrainer",
    "AlbertSentenceOrder",
    "AlbertSpellingCorrector",
    "AlbertTextClassifier",
    "AlbertTextEmbedder",
    "AlbertTextRegressor",
]
