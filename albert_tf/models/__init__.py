"""The tasks on `AlbertBackbone`, one per file."""

from albert_tf.backbone import SIZES, AlbertBackbone
from albert_tf.models.albert_masked_lm import AlbertMaskedLM
from albert_tf.models.albert_multi_label_classifier import AlbertMultiLabelClassifier
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
from albert_tf.models.task import TASKS, AlbertTask
from albert_tf.trainers.datasets import bucket_by_length

__all__ = [
    "SIZES",
    "TASKS",
    "AlbertBackbone",
    "AlbertMaskedLM",
    "AlbertMultiLabelClassifier",
    "AlbertMultipleChoice",
    "AlbertPretrainer",
    "AlbertQuestionAnswering",
    "AlbertSentenceOrder",
    "AlbertSpellingCorrector",
    "AlbertSummarizer",
    "AlbertTask",
    "AlbertTextClassifier",
    "AlbertTextEmbedder",
    "AlbertTextRegressor",
    "AlbertTokenClassifier",
    "bucket_by_length",
]
