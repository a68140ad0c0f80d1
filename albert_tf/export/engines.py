"""Run a task by another engine, and compare its outputs with those of Keras."""

import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_tf.export.litert_files import litert
from albert_tf.export.onnx_files import onnx
from albert_tf.export.transformers_js import WebNetwork
from albert_tf.models.task import AlbertTask
from albert_tf_lite import LiteRTModel, OnnxModel
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel, Texts

# The writer and the reader of each engine's files.
ENGINES: dict[str, Any] = {"onnx": (onnx, OnnxModel), "litert": (litert, LiteRTModel)}


def exported(task: AlbertTask, engine: str = "onnx") -> ExportedModel:
    """Return a task in 8 bits, for fast prediction on a CPU.

    The export takes seconds and has the weights of the moment: keep the result. It is
    not safe in several threads.

    Args:
        task: a text or multi-label classifier, regressor, token classifier, embedder or
            sentence-order model; for ONNX Runtime also a model for question answering
            or multiple choice.
        engine: `"onnx"` for ONNX Runtime or `"litert"` for LiteRT, extras of the same
            names.

    Returns:
        An `albert_tf_lite.OnnxModel` or `LiteRTModel`, with `predict`, `answers` and
        `outputs` for lists of texts.

    Raises:
        ImportError: if the engine is not installed.
        AlbertError: if the engine is unknown, the class of the task or the activation
            is not supported, or the model has no preprocessor or is quantized.

    Example:
    ```python
    fast = albert_tf.export.exported(classifier, "onnx")
    fast.predict(["很好", "太差了"])["label"]
    ```
    """
    if engine not in ENGINES:
        raise AlbertError(
            f"`engine` must be one of {', '.join(ENGINES)}. Received: {engine!r}"
        )
    write, opens = ENGINES[engine]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "model")
        write(task, path, precision="int8")
        return opens(path)


def largest_difference(
    task: AlbertTask, model: ExportedModel | WebNetwork, texts: Texts
) -> float:
    """Return the largest difference between the outputs of a file and its task."""
    packed = task.preprocessor(task.read_examples(texts).x)
    features = {name: x.numpy() for name, x in packed.items()}
    outputs = task(features, training=False)
    if isinstance(outputs, dict):
        outputs = keras.ops.stack(list(outputs.values()), axis=-1)
    # Each choice of an example is a row of the file.
    rows = {name: ids.reshape(-1, ids.shape[-1]) for name, ids in features.items()}
    of_file = model.call(rows)
    difference = keras.ops.convert_to_numpy(outputs) - of_file.reshape(outputs.shape)
    is_token = features["padding_mask"] > 0
    has_outputs_per_token = of_file.ndim == 3
    has_choices = is_token.ndim == 3
    # Outputs of padding tokens and of missing choices may differ.
    if has_outputs_per_token:
        difference = difference[is_token]
    elif has_choices:
        difference = difference[is_token.any(axis=-1)]
    return float(np.abs(difference).max())
