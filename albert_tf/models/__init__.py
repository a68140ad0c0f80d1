"""The models: a task a file, on `AlbertBackbone`."""

from albert_tf.backbone import SIZES, AlbertBackbone
from albert_tf.models.albert_distiller import AlbertDistiller
from albert_tf.models.albert_masked_lm import AlbertMaskedLM
from albert_tf.models.albert_multiple_choice import AlbertMultipleChoice
from albert_tf.models.albert_pretrainer import AlbertPretrainer
from albert_tf.models.albert_question_answering import AlbertQuestionAnswering
from albert_tf.models.albert_sentence_order import AlbertSentenceOrder
from albert_tf.models.albert_spelling_corrector import AlbertSpellingCorrector
from albert_tf.models.albert_summarizer import AlbertSummarizer
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.albert_text_embedder import AlbertTextEmbedder
from albert_tf.models.albert_text_regressor import AlbertTextRegressor
from albert_tf.models.albert_token_classifier import AlbertTokenClassifier
from albert_tf.models.attributions import (
    Attributions,
    IntegratedGradients,
    integrated_gradients,
)
from albert_tf.models.features import text_features
from albert_tf.models.zero_shot_classifier import ZeroShotClassifier

__all__ = [
    "SIZES",
    "AlbertBackbone",
    "AlbertDistiller",
    "AlbertMaskedLM",
    "AlbertMultipleChoice",
    "AlbertPretrainer",
    "AlbertQuestionAnswering",
    "AlbertSentenceOrder",
    "AlbertSpellingCorrector",
    "AlbertSummarizer",
    "AlbertTextClassifier",
    "AlbertTextEmbedder",
    "AlbertTextRegressor",
    "AlbertTokenClassifier",
    "Attributions",
    "IntegratedGradients",
    "ZeroShotClassifier",
    "integrated_gradients",
    "text_features",
]
