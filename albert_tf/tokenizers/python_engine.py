"""Tokenizers in plain Python as operations of TensorFlow."""

import itertools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from albert_tf_lite import SentencePieceTokenizer, WordPieceTokenizer


class PythonEngine:
    """Engine of a tokenizer of `albert_tf_lite`, where TensorFlow Text is missing.

    The operations call Python, so a graph that is saved cannot run them.
    """

    def __init__(self, tokenizer: WordPieceTokenizer | SentencePieceTokenizer):
        self._tokenizer = tokenizer

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of strings [batch], ragged."""
        (ids,) = _columns(lambda one: (self._tokenizer.tokenize(one),), 1, text)
        return ids

    def encode_with_offsets(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Return ids, starts and ends of strings [batch], all ragged."""
        return _columns(self._tokenizer.tokenize_with_offsets, 3, text)


def _columns(
    function: Callable[[str], tuple[list[int], ...]], count: int, text: tf.Tensor
) -> tuple[tf.RaggedTensor, ...]:
    """Call a function that returns `count` lists of equal length on each string."""

    def call(texts):
        tokenized = [function(one.decode("utf-8", "ignore")) for one in texts]
        lengths = [len(columns[0]) for columns in tokenized]
        arrays = [np.cumsum([0, *lengths], dtype="int64")]
        for i in range(count):
            column = itertools.chain.from_iterable(columns[i] for columns in tokenized)
            arrays.append(np.fromiter(column, "int32"))
        return arrays

    dtypes = [tf.int64] + [tf.int32] * count
    arrays = tf.numpy_function(call, [text], dtypes, stateful=False)
    splits, *columns = [tf.ensure_shape(array, [None]) for array in arrays]
    return tuple(
        tf.RaggedTensor.from_row_splits(column, splits, validate=False)
        for column in columns
    )
