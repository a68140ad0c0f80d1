"""Tasks computed in 8 bits by another engine than TensorFlow."""

from __future__ import annotations

import tempfile
import threading
import weakref
from pathlib import Path

from albert_tf.export.contents import contents_of
from albert_tf.export.litert import litert
from albert_tf.export.onnx import onnx
from albert_tf.models.task import AlbertTask
from albert_tf.training.run_state import weights_digest
from albert_tf_lite import LiteRTModel, OnnxModel
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel

# By engine, what writes a file and what runs it.
_FORMATS = {"onnx": (onnx, OnnxModel), "litert": (litert, LiteRTModel)}
# By task and engine, the state of the task when it was exported, and the open file.
_OPENED: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def exported(task: AlbertTask, engine: str = "onnx") -> ExportedModel:
    """Return a task in 8 bits, for fast prediction on a CPU.

    Export and checksum of the weights take their time once: keep the returned object.
    A further call returns the same one, or exports again if the weights have changed.

    Args:
        task: a task that LiteRT and ONNX files are written for, see
            `albert_tf.export.onnx`.
        engine: `"onnx"` for ONNX Runtime or `"litert"` for LiteRT, extras of the same
            names.

    Returns:
        An `albert_tf_lite.OnnxModel` or `LiteRTModel`, with `predict`, `answers` and
        `outputs` for lists of texts.

    Raises:
        ImportError: if the engine is not installed.
        TypeError: if there is no such file for the task.
        AlbertError: if the engine is unknown, or as `albert_tf.export.onnx`.

    Example:
    ```python
    fast = albert_tf.export.exported(classifier, "onnx")
    fast.predict(["很好", "太差了"])["label"]
    ```
    """
    if engine not in _FORMATS:
        raise AlbertError(
            f"`engine` must be one of {', '.join(_FORMATS)}. Received: {engine!r}"
        )
    write, opens = _FORMATS[engine]
    with _LOCK:
        state = contents_of(task), weights_digest(task)
        opened = _OPENED.setdefault(task, {})
        if engine not in opened or opened[engine][0] != state:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model")
                write(task, path, precision="int8")
                opened[engine] = state, opens(path)
        return opened[engine][1]
