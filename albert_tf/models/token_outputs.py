"""Outputs and targets with an axis for the tokens."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

# A target of padding, where every token has one: an `ignore_class` for the loss.
PADDING_TARGET = -1


def is_per_token(symbolic: keras.KerasTensor) -> bool:
    """Whether the second axis of an output is that of the tokens."""
    return len(symbolic.shape) > 1 and symbolic.shape[1] is None


def without_padding(outputs: Any, symbolic: Any, padding_mask: tf.Tensor) -> Any:
    """Outputs of a batch, those of tokens as `tf.RaggedTensor`s.

    Keras joins ragged outputs of batches quickly; others only of equal lengths.
    """
    lengths = tf.reduce_sum(padding_mask, axis=1)

    def cut(output, symbolic):
        if is_per_token(symbolic):
            return tf.RaggedTensor.from_tensor(output, lengths=lengths)
        return output

    return keras.tree.map_structure(cut, outputs, symbolic)


def split_ragged(outputs: Any) -> Any:
    """Ragged outputs as lists of arrays, one a text."""

    def split(output):
        if not isinstance(output, tf.RaggedTensor):
            return output
        return np.split(output.values.numpy(), output.row_splits.numpy()[1:-1])

    return keras.tree.map_structure(split, outputs)


def pad_target(target: Any, shape: tf.Tensor) -> Any:
    """A ragged target as long as the tokens [batch, time] of a `shape`."""
    if isinstance(target, tf.RaggedTensor):
        target = target.to_tensor(PADDING_TARGET, shape=shape)
    return one_type(target)


def one_type(target: Any) -> Any:
    """Whole numbers in 64 bits, so that another form of them is not traced anew."""
    return tf.cast(target, tf.int64) if target.dtype.is_integer else target


def targets_of_one_type(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """A dataset of `(x, y)` or `(x, y, sample_weight)`, its `y` by `one_type`."""
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2:
        return dataset
    types = {leaf.dtype for leaf in tf.nest.flatten(spec[1])}
    if not any(dtype.is_integer and dtype != tf.int64 for dtype in types):
        return dataset
    return dataset.map(lambda x, y, *w: (x, tf.nest.map_structure(one_type, y), *w))


def empty_outputs(symbolic: Any) -> Any:
    """Return the outputs for an empty list of texts."""

    def empty(symbolic):
        if is_per_token(symbolic):
            return []
        return np.zeros((0, *symbolic.shape[1:]), symbolic.dtype)

    return keras.tree.map_structure(empty, symbolic)
