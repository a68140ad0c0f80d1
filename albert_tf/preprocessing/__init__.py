"""From strings to what the models take."""

# Tokenizers know the backbone they are for, and models make tokenizers: first the
# models, whoever asks first.
import albert_tf.models  # noqa: F401
from albert_tf.preprocessing.load_tokenizer import load_tokenizer
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.sentence_piece_tokenizer import SentencePieceTokenizer
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.whole_word_mask_generator import WholeWordMaskGenerator
from albert_tf.preprocessing.word_piece_tokenizer import WordPieceTokenizer

__all__ = [
    "AlbertTextClassifierPreprocessor",
    "SegmentPacker",
    "SentencePieceTokenizer",
    "WholeWordMaskGenerator",
    "WordPieceTokenizer",
    "load_tokenizer",
]
