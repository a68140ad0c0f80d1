"""Writing a model for TensorFlow Serving."""

from albert_tf.export.saved_model import saved_model

__all__ = ["saved_model"]
