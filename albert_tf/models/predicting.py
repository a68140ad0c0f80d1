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
from albert_tf_lite.errors import AlbertError


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
    task: keras.Model,
    x: Any,
    engine: str,
    batch_size: int | None,
    max_tokens: int | None,
) -> np.ndarray:
    """What another engine than TensorFlow gives; as `FitsTexts.predict` takes it.

    Raises:
        AlbertError: if the engine does not take `x`, or `max_tokens` is given.
    """
    if not task._takes_texts(x) or max_tokens is not None:
        raise AlbertError(
            f"engine={engine!r} takes texts as lists, and no `max_tokens`. Received: "
            f"`x` of type {type(x).__name__}, max_tokens={max_tokens}"
        )
    # By name, for what writes files stands above the models.
    engines = importlib.import_module("albert_tf.export.engines")
    return engines.outputs_of(task, x, engine, batch_size)


def _of_any_size(spec):
    return tf.TensorSpec([None] * spec.shape.rank, spec.dtype, spec.name)


def _as_array(output) -> tf.RaggedTensor | np.ndarray:
    is_ragged = isinstance(output, tf.RaggedTensor)
    return output if is_ragged else keras.ops.convert_to_numpy(output)
