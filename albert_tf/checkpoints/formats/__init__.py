"""The forms a checkpoint lies on disk in: how each is found, read and written.

A format is a class with
`find(folder)`: what it can open there;
`path`, `folders`: what it is called in messages, where config and vocabulary lie;
`shapes`, `read(name)`: its tensors, by their names in the file;
`find_layout()`, `find_config(config)`, `tokenizer(lowercase)`.
"""

from albert_tf.checkpoints.formats.bundle import TensorFlowBundle
from albert_tf.checkpoints.formats.huggingface import HuggingFaceFiles
from albert_tf.checkpoints.formats.keras_model import KerasModel

__all__ = ["HuggingFaceFiles", "KerasModel", "TensorFlowBundle"]
