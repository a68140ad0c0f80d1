"""Run files of `albert_tf.export` on texts, without TensorFlow.

The package imports NumPy and either ai-edge-litert or onnxruntime.
"""

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.litert_model import LiteRTModel
from albert_tf_lite.onnx_model import OnnxModel
from albert_tf_lite.pipelines import pipeline
from albert_tf_lite.sentence_piece import SentencePieceTokenizer
from albert_tf_lite.word_piece import WordPieceTokenizer

__version__ = "0.1.0"

__all__ = [
    "AlbertError",
    "LiteRTModel",
    "OnnxModel",
    "SentencePieceTokenizer",
    "WordPieceTokenizer",
    "pipeline",
]
