"""Run a model on batches of texts, and its outputs in input order."""

from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.models.batching import TextBatches, text_batches
from albert_tf.models.datasets import check_pairs, refuse_for_datasets, takes_texts
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import (
    check_batched,
    count_examples,
    read_examples,
)


def predict_rows(
    task: Any,
    x: Any,
    batch_size: int | None = None,
    *,
    max_tokens: int | None = None,
    **kwargs: Any,
) -> tuple[Any, PackedTexts | None, Any]:
    """Return the texts, their rows, and the outputs of the rows.

    A method of `AlbertTask`. `kwargs` are passed to Keras' `predict`.
    """
    x = task.read_texts(x)
    check_pairs(task, x)
    if takes_texts(task, x):
        (x,) = read_examples(x)
    else:
        refuse_for_datasets(max_tokens=max_tokens)
        if isinstance(x, tf.data.Dataset):
            check_batched(x)
        # KerasHub preprocesses texts of a dataset.
        predict = keras_hub.models.Task.predict
        outputs = predict(task, x, batch_size=batch_size, **kwargs)
        return x, None, split_ragged(outputs)
    if count_examples(x) == 0:
        return x, None, empty_outputs(task.output)
    packed = task.preprocessor.pack_texts(x)
    batches = task.prediction_batches(packed, batch_size, max_tokens)
    return x, packed, predict_batches(task, batches, **kwargs)


def prediction_batches(
    task: Any,
    packed: PackedTexts,
    batch_size: int | None = None,
    max_tokens: int | None = None,
) -> TextBatches:
    """Return the rows to predict in batches."""
    return text_batches(
        task.preprocessor, packed, batch_size=batch_size, max_tokens=max_tokens
    )


def predict_step(task: Any, *args: Any) -> Any:
    """Return the outputs of a batch, those of tokens without padding."""
    outputs = keras.Model.predict_step(task, *args)
    if keras.backend.backend() != "tensorflow":
        return outputs
    x, _, _ = keras.utils.unpack_x_y_sample_weight(args[-1])
    mask = task.predicted_mask(x)
    return outputs if mask is None else without_padding(outputs, task.output, mask)


def predict_batches(model: keras.Model, batches: TextBatches, **kwargs: Any) -> Any:
    """Return the outputs of a model in the order of the examples.

    A single batch, or with `verbose=0` each, goes to the model without a dataset and
    shows no progress bar. `kwargs` are the arguments of `keras.Model.predict`.
    """
    model.make_predict_function()
    function = model.predict_function
    is_traced = model.steps_per_execution == 1 and isinstance(
        function, tf.types.experimental.PolymorphicFunction
    )
    is_silent = batches.count == 1 or kwargs.get("verbose") == 0
    is_direct = (
        is_traced
        and is_silent
        and kwargs.get("callbacks") is kwargs.get("steps") is None
        and model.distribute_strategy.num_replicas_in_sync == 1
    )
    if (
        is_traced
        # A graph would be traced, but not used.
        and not tf.config.functions_run_eagerly()
        and not function.experimental_get_tracing_count()
    ):
        # For any length at once, where Keras would trace three times.
        example = next(iter(batches)) if is_direct else batches.dataset.element_spec
        spec = keras.tree.map_structure(
            lambda x: tf.TensorSpec([None] * x.shape.rank, x.dtype), example
        )
        function.get_concrete_function([spec])
    if is_direct:
        outputs = _joined([function([batch]) for batch in batches])
    else:
        # Without KerasHub's preprocessing.
        outputs = keras.Model.predict(model, batches.dataset, **kwargs)
    return batches.restore(split_ragged(outputs))


def _joined(outputs: list[Any]) -> Any:
    """Return the outputs of batches as those of one batch."""
    return keras.tree.map_structure(lambda *x: tf.concat(x, axis=0), *outputs)


# === Outputs with an axis for the tokens ===


def is_per_token(symbolic: keras.KerasTensor) -> bool:
    """Return whether the second axis of an output is that of the tokens."""
    return len(symbolic.shape) > 1 and symbolic.shape[1] is None


def without_padding(outputs: Any, symbolic: Any, padding_mask: tf.Tensor) -> Any:
    """Return the outputs of a batch, those of tokens as `tf.RaggedTensor`s.

    Keras joins ragged outputs of batches quickly; others only of equal lengths.
    """
    lengths = tf.reduce_sum(padding_mask, axis=1)

    def cut(output, symbolic):
        if is_per_token(symbolic):
            return tf.RaggedTensor.from_tensor(output, lengths=lengths)
        return output

    return keras.tree.map_structure(cut, outputs, symbolic)


def split_ragged(outputs: Any) -> Any:
    """Return outputs as arrays, and ragged ones as lists of arrays, one per row."""

    def split(output):
        if not isinstance(output, tf.RaggedTensor):
            return keras.ops.convert_to_numpy(output)
        return np.split(output.values.numpy(), output.row_splits.numpy()[1:-1])

    return keras.tree.map_structure(split, outputs)


def empty_outputs(symbolic: Any) -> Any:
    """Return the outputs for an empty list of texts."""

    def empty(symbolic):
        if is_per_token(symbolic):
            return []
        return np.zeros((0, *symbolic.shape[1:]), symbolic.dtype)

    return keras.tree.map_structure(empty, symbolic)
