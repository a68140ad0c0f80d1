"""Prediction of texts: traced once for any length; few without a dataset; by engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.models.token_outputs import split_ragged
from albert_tf.preprocessing.length_grouping import GroupedTexts
from albert_tf.preprocessing.token_budget import TokenBudget

# The engines beside TensorFlow, and where `outputs_of` a task is. By name, for what
# writes their files stands above the models.
ENGINES = {"onnx": "albert_tf.export.engines", "litert": "albert_tf.export.engines"}


def predict_grouped(
    model: keras.Model,
    texts: GroupedTexts,
    predict: Callable[..., Any],
    **kwargs: Any,
) -> Any:
    """What a model gives for texts, in their order.

    Texts that are one batch go to the model as they are, and show no progress bar:
    for a dataset of one sentence, building takes ten times as long as a small model.

    Args:
        model: a built model.
        texts: its texts.
        predict: its `keras.Model.predict`.
        **kwargs: passed on to `predict`.
    """
    model.make_predict_function()
    function = model.predict_function
    is_traced = model.steps_per_execution == 1 and isinstance(
        function, tf.types.experimental.PolymorphicFunction
    )
    is_few = (
        is_traced
        and texts.only_batch is not None
        and kwargs.keys() <= {"verbose"}
        and model.distribute_strategy.num_replicas_in_sync == 1
    )
    batch = texts.only_batch() if is_few else None
    if is_traced and not function.experimental_get_tracing_count():
        # For any length at once, where Keras would trace three times.
        spec = (
            keras.tree.map_structure(tf.TensorSpec.from_tensor, batch)
            if is_few
            else texts.dataset.element_spec
        )
        function.get_concrete_function([keras.tree.map_structure(_of_any_size, spec)])
    outputs = (
        keras.tree.map_structure(_as_array, function([batch]))
        if is_few
        else predict(texts.dataset, **kwargs)
    )
    return texts.restore(split_ragged(outputs))


def predict_by_engine(
    task: keras.Model, x: Any, engine: str, batch_size: int | TokenBudget | None
) -> np.ndarray:
    """What an engine of `ENGINES` gives for texts; as `FitsTexts.predict` takes them.

    Raises:
        ValueError: if there is no such engine, or it does not take `x`.
    """
    if engine not in ENGINES:
        raise ValueError(
            f"`engine` must be one of {', '.join(ENGINES)}, or None for TensorFlow. "
            f"Received: {engine!r}"
        )
    tokens = getattr(batch_size, "tokens", None)
    if not task._takes_texts(x) or tokens:
        raise ValueError(
            f"engine={engine!r} takes texts as lists, and no `max_tokens`. Received: "
            f"`x` of type {type(x).__name__}"
            + (f", max_tokens={tokens}" * bool(tokens))
        )
    outputs_of = importlib.import_module(ENGINES[engine]).outputs_of
    return outputs_of(task, x, engine, batch_size)


def _of_any_size(spec):
    return tf.TensorSpec([None] * spec.shape.rank, spec.dtype, spec.name)


def _as_array(output) -> tf.RaggedTensor | np.ndarray:
    is_ragged = isinstance(output, tf.RaggedTensor)
    return output if is_ragged else keras.ops.convert_to_numpy(output)
