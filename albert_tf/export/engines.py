"""Run a task by another engine, and compare the engine with Keras."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.export.litert import litert
from albert_tf.export.onnx import onnx
from albert_tf.models.task import AlbertTask
from albert_tf_lite import LiteRTModel, OnnxModel
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel

Features = dict[str, np.ndarray]
# The writer and the reader of each engine's files.
_ENGINES: dict[str, Any] = {"onnx": (onnx, OnnxModel), "litert": (litert, LiteRTModel)}
# LiteRT's converter, and building a Keras model, are not safe in several threads.
_LOCK = threading.Lock()


def exported(task: AlbertTask, engine: str = "onnx") -> ExportedModel:
    """Return a task in 8 bits, for fast prediction on a CPU.

    The export takes seconds and has the weights of the moment: keep the result.

    Args:
        task: a task that `albert_tf.export.onnx` takes.
        engine: `"onnx"` for ONNX Runtime or `"litert"` for LiteRT, extras of the same
            names.

    Returns:
        An `albert_tf_lite.OnnxModel` or `LiteRTModel`, with `predict`, `answers` and
        `outputs` for lists of texts.

    Raises:
        ImportError: if the engine is not installed.
        AlbertError: if the engine is unknown, or as `albert_tf.export.onnx`.

    Example:
    ```python
    fast = albert_tf.export.exported(classifier, "onnx")
    fast.predict(["很好", "太差了"])["label"]
    ```
    """
    if engine not in _ENGINES:
        raise AlbertError(
            f"`engine` must be one of {', '.join(_ENGINES)}. Received: {engine!r}"
        )
    write, opens = _ENGINES[engine]
    with _LOCK, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        write(task, path, precision="int8")
        return opens(path)


class ServedModel:
    """SavedModel with the methods of `LiteRTModel`."""

    def __init__(self, path: str | os.PathLike):
        self._model = tf.saved_model.load(str(path))

    def call(self, features: Features) -> Features:
        """Return the outputs of the signature `tokens`."""
        return self._ask("tokens", features)

    def predict(self, texts: Any) -> dict[str, Any]:
        """Return the outputs of the signature `serving_default` for strings."""
        segments = texts if isinstance(texts, tuple) else (texts,)
        inputs = zip(("text", "text_b"), map(list, segments), strict=False)
        answers = self._ask("serving_default", dict(inputs))
        if "spans" not in answers:
            return answers
        columns = (answers[name] for name in ("spans", "labels", "scores"))
        # Spans with a negative start are padding.
        spans = [
            [
                (int(start), int(end), label.decode(), float(score))
                for (start, end), label, score in zip(*row, strict=True)
                if start >= 0
            ]
            for row in zip(*columns, strict=True)
        ]
        return {"spans": spans}

    def _ask(self, signature, inputs):
        tensors = {name: tf.constant(x) for name, x in inputs.items()}
        answers = self._model.signatures[signature](**tensors)
        return {name: value.numpy() for name, value in answers.items()}


def example_features(task: Any, length: int) -> Features:
    """Return the inputs of a task for one example of `length` random tokens."""
    features = {
        # Two choices, if the task has several.
        name: np.zeros((1, *[2] * (len(tensor.shape) - 2), length), "int32")
        for name, tensor in task.input.items()
    }
    ids = features["token_ids"]
    rng = np.random.default_rng(0)
    ids[:] = rng.integers(task.backbone.vocabulary_size, size=ids.shape)
    features["padding_mask"][:] = 1
    return features


def keras_call(task: Any) -> Callable[[Features], Any]:
    """Return a task as a graph function of features."""
    graph = tf.function(lambda features: task(features, training=False))
    return lambda features: tf.nest.map_structure(np.asarray, graph(features))


def latencies(
    calls: Sequence[Callable], features: Features, seconds: float = 2.0
) -> list[float]:
    """Return the median times in milliseconds of functions, which take turns."""
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while len(times[0]) < 8 or time.perf_counter() < end:
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call(features)
            taken.append(1000 * (time.perf_counter() - start))
    # The first call prepares some engines.
    return [float(np.median(taken[1:])) for taken in times]


def largest_difference(task: Any, model: Any, texts: Any) -> float:
    """Return the largest difference between the outputs of a file and its task."""
    features = {name: x.numpy() for name, x in task.preprocessor(texts).items()}
    expected, found = task(features, training=False), model.call(features)
    pairs = [(expected, found)]
    if isinstance(model, ServedModel):
        answers = task.answers(expected).items()
        pairs = [(x, found[name]) for name, x in answers if x.dtype.is_floating]
    # Outputs of padding tokens may differ.
    where = features["padding_mask"] > 0 if task.output.shape[1] is None else ...
    return max(
        float(np.abs(keras.ops.convert_to_numpy(x) - y)[where].max()) for x, y in pairs
    )
