"""Tokenizers in plain Python as operations of TensorFlow."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf


class PythonEngine:
    """Engine of a tokenizer of `albert_tf_lite`, where TensorFlow Text is missing.

    The operations call Python, so a graph that is saved cannot run them.
    """

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of strings [batch], ragged."""
        (ids,) = _columns(lambda x: (self._tokenizer.tokenize(x),), 1, text)
        return ids

    def encode_with_offsets(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Return ids, starts and ends of strings [batch], all ragged."""
        return _columns(self._tokenizer.tokenize_with_offsets, 3, text)


def _columns(
    function: Callable[[str], tuple[list[int], ...]], count: int, text: tf.Tensor
) -> tuple[tf.RaggedTensor, ...]:
    """Call a function that returns `count` lists of equal length on each string."""

    def call(texts):
        rows = [function(x.decode("utf-8", "ignore")) for x in texts]
        flat = (itertools.chain.from_iterable(x[i] for x in rows) for i in range(count))
        splits = np.cumsum([0, *(len(x[0]) for x in rows)], dtype="int64")
        return splits, *(np.fromiter(x, "int32") for x in flat)

    dtypes = [tf.int64, *[tf.int32] * count]
    results = tf.numpy_function(call, [text], dtypes, stateful=False)
    splits, *values = (tf.ensure_shape(x, [None]) for x in results)
    return tuple(
        tf.RaggedTensor.from_row_splits(x, splits, validate=False) for x in values
    )
