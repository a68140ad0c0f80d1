"""Run files of `albert_tf.export` on texts, without TensorFlow.

The package imports NumPy and either ai-edge-litert or onnxruntime. The folder can be
copied on its own.
"""

from albert_tf_lite.litert_model import LiteRTModel
from albert_tf_lite.onnx_model import OnnxModel
from albert_tf_lite.pipelines import pipeline

__all__ = ["LiteRTModel", "OnnxModel", "pipeline"]
