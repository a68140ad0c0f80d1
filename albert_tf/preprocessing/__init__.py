"""Preprocessors of the tasks, packing and masks."""

from albert_tf.preprocessing.masked_lm_preprocessor import AlbertMaskedLMPreprocessor
from albert_tf.preprocessing.masking import WholeWordMaskGenerator
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.task_preprocessors import (
    AlbertMultipleChoicePreprocessor,
    AlbertQuestionAnsweringPreprocessor,
    AlbertSummarizerPreprocessor,
    AlbertTokenClassifierPreprocessor,
)
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)

__all__ = [
    "AlbertMultipleChoicePreprocessor",
    "AlbertQuestionAnsweringPreprocessor",
    "AlbertMaskedLMPreprocessor",
    "AlbertSummarizerPreprocessor",
    "AlbertTextClassifierPreprocessor",
    "AlbertTokenClassifierPreprocessor",
    "SegmentPacker",
    "WholeWordMaskGenerator",
]
