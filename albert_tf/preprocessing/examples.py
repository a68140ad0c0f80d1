"""What `fit` is given: examples held in memory, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.token_budget import TokenBudget
from albert_tf_lite.errors import AlbertError


def count_examples(x: Any) -> int:
    """How many texts, pairs of texts, or rows of ids."""
    if isinstance(x, dict):
        x = tuple(x.values())
    return len(x[0] if isinstance(x, tuple) else x)


def is_pair(x: Any) -> bool | None:
    """Whether what `fit` is given are pairs of texts; `None` if they are ids."""
    if isinstance(x, tf.data.Dataset):
        spec = x.element_spec
        x = spec[0] if isinstance(spec, tuple) else spec
        if any(part.dtype != tf.string for part in tf.nest.flatten(x)):
            return None
    elif not isinstance(x, (list, tuple)) and not hasattr(x, "__array__"):
        return None
    return isinstance(x, tuple)


def split_off(x: Any, y: Any, sample_weight: Any, share: float) -> tuple:
    """The examples to train on, and the last `share` of them to validate on."""
    if not 0 < share < 1:
        raise AlbertError(
            f"`validation_split` must lie between 0 and 1. Received: {share}"
        )
    count = count_examples(x)
    start = int(count * (1 - share))

    def part(rows):
        def rows_of(values):
            return None if values is None else values[rows]

        texts = tuple(map(rows_of, x)) if isinstance(x, tuple) else rows_of(x)
        return texts, rows_of(y), rows_of(sample_weight)

    return part(slice(0, start)), part(slice(start, count))


def count_steps(
    x: Any,
    y: Any,
    batch_size: int | TokenBudget,
    validation_split: float | None = None,
) -> int:
    """The steps of an epoch; 0 where they are not known, as of a `TokenBudget`."""
    if isinstance(batch_size, TokenBudget):
        return 0
    if isinstance(x, tf.data.Dataset):
        return max(int(x.cardinality()), 0)
    if y is None:
        return 0
    count = int(count_examples(x) * (1 - (validation_split or 0)))
    return -(-count // batch_size)


def check_batched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset, refused if it gives a text at a time."""
    first = tf.nest.flatten(dataset.element_spec)[0]
    if first.dtype == tf.string and first.shape.rank == 0:
        raise AlbertError(
            "The dataset gives one text at a time. Expected batches: give "
            "`dataset.batch(32)`."
        )
    return dataset


def check_class_ids(x: Any, y: Any, num_classes: int | None = None) -> np.ndarray:
    """The labels as an array, one a text, below `num_classes` if that is given."""
    if y is None:
        raise AlbertError("`y`, the class of each text, is missing.")
    y = np.asarray(y)
    if len(y) == 0 or len(y) != count_examples(x):
        raise AlbertError(
            "`x` and `y` must have the same number of examples, at least one. "
            f"Received: {count_examples(x)} texts and {len(y)} labels."
        )
    if y.dtype.kind in "US" or y.dtype == object:
        raise AlbertError(
            "`y` must be numbers, the positions of the classes from 0 on, or names of "
            f"the `labels=` that the model was built with. Received: {y[:3]}"
        )
    if num_classes and y.ndim > 1 and y.shape[1:] != (1,):
        raise AlbertError(
            "`y` must be the class of each text, one number. Received shape "
            f"{y.shape}. Of one-hot rows give `y.argmax(axis=1)`, or compile with "
            'loss="categorical_crossentropy".'
        )
    if num_classes and y.ndim == 1 and y.dtype.kind in "iub":
        wrong = np.flatnonzero((y < 0) | (y >= num_classes))
        if len(wrong):
            raise AlbertError(
                f"`y` must lie between 0 and num_classes - 1, that is "
                f"{num_classes - 1}. Element {wrong[0]} is {y[wrong[0]]}."
            )
    return y


def check_class_names(
    labels: Sequence[str] | None, num_classes: int
) -> list[str] | None:
    """`num_classes` different names as strings, or `None` if there are none."""
    if labels is None:
        return None
    names = [str(label) for label in labels]
    if len(names) != num_classes or len(set(names)) != num_classes:
        raise AlbertError(
            f"`labels` must name each of the {num_classes} classes, each "
            f"differently. Received {len(names)}: {list(labels)}"
        )
    return names
