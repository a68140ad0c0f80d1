"""Writing a model for TensorFlow Serving, phones, ONNX Runtime."""

from albert_tf.export.litert import litert
from albert_tf.export.onnx import onnx
from albert_tf.export.saved_model import saved_model
from albert_tf_lite import LiteRTModel, OnnxModel

__all__ = ["LiteRTModel", "OnnxModel", "litert", "onnx", "saved_model"]
