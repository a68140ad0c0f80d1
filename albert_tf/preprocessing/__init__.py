"""Preprocessors of the tasks, packing and masks."""

from albert_tf.preprocessing.masked_lm_preprocessor import AlbertMaskedLMPreprocessor
from albert_tf.preprocessing.masking import WholeWordMaskGenerator
from albert_tf.preprocessing.multiple_choice_preprocessor import (
    AlbertMultipleChoicePreprocessor,
)
from albert_tf.preprocessing.question_answering_preprocessor import (
    AlbertQuestionAnsweringPreprocessor,
)
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.summarizer_preprocessor import (
    AlbertSummarizerPreprocessor,
)
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.token_classifier_preprocessor import (
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
