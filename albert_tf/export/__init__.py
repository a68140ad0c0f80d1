"""Export to SavedModel, LiteRT and ONNX."""

from albert_tf.export.engines import exported
from albert_tf.export.litert_files import litert
from albert_tf.export.onnx_files import onnx
from albert_tf.export.saved_models import saved_model
from albert_tf.export.transformers_js import transformers_js
from albert_tf_lite import LiteRTModel, OnnxModel

__all__ = [
    "LiteRTModel",
    "OnnxModel",
    "exported",
    "litert",
    "onnx",
    "saved_model",
    "transformers_js",
]
