"""`predict` by another engine than TensorFlow, of a file in 8 bits."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.export.contents import contents_of
from albert_tf.export.litert import litert
from albert_tf.export.onnx import onnx
from albert_tf.models.task import AlbertTask
from albert_tf.training.run_state import weights_digest
from albert_tf_lite import LiteRTModel, OnnxModel
from albert_tf_lite.answers import TOKEN_CLASSIFICATION
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel

# By engine, what writes a file, and what runs it.
_FORMATS = {"onnx": (onnx, OnnxModel), "litert": (litert, LiteRTModel)}
# By task and engine, what its weights were when it was exported, and the file opened.
_OPENED: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def outputs_of(
    task: AlbertTask, x: Any, engine: str, batch_size: int | None = None
) -> np.ndarray:
    """What a task gives for texts, computed in 8 bits.

    Args:
        task: a task that a file of the engine is written for, with one output a text.
        x: list of strings, or for pairs the tuple of two such lists.
        engine: `"onnx"` or `"litert"`.
        batch_size: optional int, examples at a time.

    Returns:
        A float32 array [examples, units].

    Raises:
        ImportError: if the engine is not installed.
        TypeError: if the task has no such file.
        AlbertError: if there is no such engine, or as `albert_tf.export.onnx`.
    """
    if engine not in _FORMATS:
        raise AlbertError(
            f"`engine` must be one of {', '.join(_FORMATS)}, or None for TensorFlow. "
            f"Received: {engine!r}"
        )
    model = _opened(task, engine)
    model.batch_size = batch_size or type(model).batch_size
    return model.outputs(x)


def _opened(task, engine) -> ExportedModel:
    """The file of the task, made anew where the weights are others than at its time."""
    settings = contents_of(task).settings
    if settings["task"] == TOKEN_CLASSIFICATION:
        raise AlbertError(
            "`engine` is for tasks of one output a text. Export a token classifier "
            "by albert_tf.export, whose classes give its spans."
        )
    state = settings["sequence_length"], weights_digest(task)
    opened = _OPENED.setdefault(task, {})
    if engine not in opened or opened[engine][0] != state:
        write, opens = _FORMATS[engine]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            write(task, path, precision="int8")
            opened[engine] = state, opens(path)
    return opened[engine][1]
