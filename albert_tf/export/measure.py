"""Compare an exported model with its task: outputs and latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.models.batching import is_per_token
from albert_tf.models.task import AlbertTask


class ServedModel:
    """SavedModel of `albert_tf.export.saved_model` with the methods of `LiteRTModel`.

    Args:
        path: path of its directory.
    """

    def __init__(self, path: Any):
        self._model = tf.saved_model.load(str(path))
        self._signatures = self._model.signatures

    def call(self, features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs of the signature `tokens`."""
        tensors = {name: tf.constant(x) for name, x in features.items()}
        return _as_arrays(self._signatures["tokens"](**tensors))

    def predict(self, texts: Any, batch_size: int = 32) -> dict[str, Any]:
        """Return the outputs of the signature `serving_default` for strings."""
        function = self._signatures["serving_default"]
        names = ("text", "text_b")
        segments = texts if isinstance(texts, tuple) else (texts,)
        parts = []
        for start in range(0, len(segments[0]), batch_size):
            batch = (list(x[start : start + batch_size]) for x in segments)
            tensors = map(tf.constant, batch)
            answers = function(**dict(zip(names, tensors, strict=False)))
            parts.append(_as_arrays(answers))
        if "spans" in parts[0]:
            return {"spans": [span for part in parts for span in _spans(part)]}
        return {
            name: np.concatenate([part[name] for part in parts]) for name in parts[0]
        }


def _as_arrays(answers):
    return {name: value.numpy() for name, value in answers.items()}


def _spans(answers):
    """Return the spans of each text; those with a negative start are padding."""
    names = ("spans", "labels", "scores")
    for row in zip(*(answers[name] for name in names), strict=True):
        yield [
            (int(start), int(end), label.decode(), float(score))
            for (start, end), label, score in zip(*row, strict=True)
            if start >= 0
        ]


def example_features(task: AlbertTask, length: int) -> dict[str, np.ndarray]:
    """Return the inputs of a task for one example of `length` random tokens."""
    known = task.backbone.vocabulary_size
    rng = np.random.default_rng(0)
    features = {}
    for name, tensor in task.input.items():
        # Two, if the task has several choices.
        shape = (1, *[2] * (len(tensor.shape) - 2), length)
        features[name] = np.zeros(shape, "int32")
    features["token_ids"][:] = rng.integers(known, size=features["token_ids"].shape)
    features["padding_mask"][:] = 1
    return features


def keras_call(task: AlbertTask) -> Callable[[dict[str, np.ndarray]], Any]:
    """Return a task as a graph function of features of any batch and length."""
    specs = {x: tf.TensorSpec(t.shape, t.dtype) for x, t in task.input.items()}
    graph = tf.function(
        lambda features: task(features, training=False), input_signature=[specs]
    )

    def call(features):
        tensors = {name: tf.constant(x) for name, x in features.items()}
        return tf.nest.map_structure(lambda x: x.numpy(), graph(tensors))

    return call


def latencies(
    calls: Sequence[Callable], features: dict[str, np.ndarray], seconds: float = 2.0
) -> list[float]:
    """Measure the median time of functions, which take turns, in milliseconds.

    Args:
        calls: functions of features.
        features: arrays by name.
        seconds: float. Duration of the measurement, of at least 7 calls each.
    """
    for call in calls:
        # The first call prepares some engines.
        call(features)
    times = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while len(times[0]) < 7 or time.perf_counter() < end:
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call(features)
            taken.append(1000 * (time.perf_counter() - start))
    return [float(np.median(taken)) for taken in times]


def largest_difference(task: AlbertTask, model: Any, texts: Any) -> float:
    """Return the largest difference between the outputs of a file and its task.

    Args:
        task: the exported task on texts.
        model: a `LiteRTModel`, an `OnnxModel` or a `ServedModel`.
        texts: list of strings, or a tuple of two lists for pairs.
    """
    features = {name: x.numpy() for name, x in task.preprocessor(texts).items()}
    found = model.call(features)
    expected = keras.ops.convert_to_numpy(task(features, training=False))
    if not isinstance(found, dict):
        expected, found = {"": expected}, {"": found}
    else:
        expected = _as_arrays(task.answers(tf.constant(expected)))
    is_token = features["padding_mask"] > 0
    differences = [
        np.abs(found[name].astype("float64") - value)
        for name, value in expected.items()
        if value.dtype.kind == "f"
    ]
    if is_per_token(task.output):
        differences = [difference[is_token] for difference in differences]
    return float(max(difference.max() for difference in differences))
