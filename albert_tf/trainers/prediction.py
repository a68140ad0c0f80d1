"""Run a model on batches of texts, and return its outputs in input order."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from albert_tf.layers.tensor_types import Tensor
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.trainers.batching import TextBatches
from albert_tf.trainers.examples import Inputs

# A tensor, or a dict of tensors by name; in NumPy, ragged ones are lists of arrays.
Outputs: TypeAlias = Tensor
Callbacks: TypeAlias = (
    keras.callbacks.Callback | Sequence[keras.callbacks.Callback] | None
)


class PredictedRows(NamedTuple):
    """The outputs of a model for rows of texts, or for ids.

    Attributes:
        x: the texts as lists, or ids or a dataset.
        packed: the rows; `None` if `x` has no texts, or is ids or a dataset.
        outputs: the outputs of the rows.
    """

    x: Inputs
    packed: PackedTexts | None
    outputs: Outputs


def predict_batches(
    model: keras.Model,
    batches: TextBatches,
    verbose: str | int = "auto",
    steps: int | None = None,
    callbacks: Callbacks = None,
) -> Outputs:
    """Return the outputs of a model in the order of the examples.

    A single batch, or with `verbose=0` each, goes to the model without a dataset and
    shows no progress bar.

    Args:
        model: a task.
        batches: a `TextBatches`.
        verbose: 0 for silence, 1 for a progress bar; `"auto"` is 1 in most cases.
        steps: optional int, the number of batches.
        callbacks: optional list of `keras.callbacks.Callback`.
    """
    model.make_predict_function()
    function = model.predict_function
    is_traced = model.steps_per_execution == 1 and isinstance(
        function, tf.types.experimental.PolymorphicFunction
    )
    is_silent = batches.count == 1 or verbose == 0
    has_options = callbacks is not None or steps is not None
    is_on_one_device = model.distribute_strategy.num_replicas_in_sync == 1
    is_direct = is_traced and is_silent and is_on_one_device and not has_options
    if is_traced and not _has_graph(function):
        example = next(iter(batches)) if is_direct else batches.dataset.element_spec
        _trace_for_any_length(function, example)
    if is_direct:
        outputs = _joined([function([batch]) for batch in batches])
    else:
        # Without KerasHub's preprocessing.
        outputs = keras.Model.predict(
            model, batches.dataset, verbose=verbose, steps=steps, callbacks=callbacks
        )
    return batches.restore(split_ragged(outputs))


def _has_graph(function: Any) -> bool:
    """Return whether a function was traced, or runs eagerly and needs no graph."""
    is_eager = tf.config.functions_run_eagerly()
    return is_eager or function.experimental_get_tracing_count() > 0


def _trace_for_any_length(function: Any, example: Any) -> None:
    """Trace a function of Keras for any length at once; Keras would do it thrice."""
    spec = keras.tree.map_structure(
        lambda part: tf.TensorSpec([None] * part.shape.rank, part.dtype), example
    )
    function.get_concrete_function([spec])


def _joined(outputs: list[Any]) -> Any:
    """Return the outputs of batches as those of one batch."""
    return keras.tree.map_structure(lambda *parts: tf.concat(parts, axis=0), *outputs)


# === Outputs with an axis for the tokens ===


def is_per_token(symbolic: keras.KerasTensor) -> bool:
    """Return whether the second axis of an output is that of the tokens."""
    return len(symbolic.shape) > 1 and symbolic.shape[1] is None


def without_padding(
    outputs: Outputs, symbolic: Outputs, padding_mask: tf.Tensor
) -> Outputs:
    """Return the outputs of a batch, those of tokens as `tf.RaggedTensor`s.

    Keras joins ragged outputs of batches quickly; others only of equal lengths.
    """
    lengths = tf.reduce_sum(padding_mask, axis=1)

    def cut(output, symbolic):
        if is_per_token(symbolic):
            return tf.RaggedTensor.from_tensor(output, lengths=lengths)
        return output

    return keras.tree.map_structure(cut, outputs, symbolic)


def split_ragged(outputs: Outputs) -> Outputs:
    """Return outputs as arrays, and ragged ones as lists of arrays, one per row."""

    def split(output):
        if not isinstance(output, tf.RaggedTensor):
            return keras.ops.convert_to_numpy(output)
        return np.split(output.values.numpy(), output.row_splits.numpy()[1:-1])

    return keras.tree.map_structure(split, outputs)


def empty_outputs(symbolic: Outputs) -> Outputs:
    """Return the outputs for an empty list of texts."""

    def empty(symbolic):
        if is_per_token(symbolic):
            return []
        return np.zeros((0, *symbolic.shape[1:]), symbolic.dtype)

    return keras.tree.map_structure(empty, symbolic)
