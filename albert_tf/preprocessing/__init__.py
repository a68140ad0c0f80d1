"""Preprocessors of the tasks, packing and masks."""

from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.preprocessing.masked_lm_preprocessor import AlbertMaskedLMPreprocessor
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.task_preprocessors import (
    AlbertMultipleChoicePreprocessor,
    AlbertSummarizerPreprocessor,
)
from albert_tf.preprocessing.text_preprocessors import (
    AlbertQuestionAnsweringPreprocessor,
    AlbertTextClassifierPreprocessor,
    AlbertTokenClassifierPreprocessor,
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
