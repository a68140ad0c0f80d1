"""The forms of a checkpoint on disk: how each is found, read and written."""

from albert_tf.checkpoints.formats.bundle import TensorFlowBundle
from albert_tf.checkpoints.formats.huggingface import HuggingFaceFiles
from albert_tf.checkpoints.formats.keras_model import KerasModel

__all__ = ["HuggingFaceFiles", "KerasModel", "TensorFlowBundle"]
