"""What `fit` is given: examples held in memory, and their labels."""

import numpy as np
import tensorflow as tf


def count_examples(x):
    """How many texts, or pairs of texts."""
    return len(x[0] if isinstance(x, tuple) else x)


def is_pair(x):
    """Whether the examples, in memory or in a dataset, are pairs of texts."""
    if isinstance(x, tf.data.Dataset):
        spec = x.element_spec
        x = spec[0] if isinstance(spec, tuple) else spec
    return isinstance(x, tuple)


def split_off(x, y, sample_weight, share):
    """The examples to train on, and the last `share` of them to validate on."""
    if not 0 < share < 1:
        raise ValueError(
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


def check_class_ids(x, y, num_classes=None):
    """The labels as an array, one a text, below `num_classes` if that is given.

    Raises:
        ValueError: if they are missing, too few or many, no numbers, or no class.
    """
    if y is None:
        raise ValueError("`y`, the class of each text, is missing.")
    y = np.asarray(y)
    if len(y) == 0 or len(y) != count_examples(x):
        raise ValueError(
            "`x` and `y` must have the same number of examples, at least one. "
            f"Received: {count_examples(x)} texts and {len(y)} labels."
        )
    if y.dtype.kind in "US" or y.dtype == object:
        raise ValueError(
            "`y` must be numbers, the positions of the classes from 0 on. "
            f"Received: {y[:3]}"
        )
    if num_classes and y.ndim == 1 and y.dtype.kind in "iub":
        wrong = np.flatnonzero((y < 0) | (y >= num_classes))
        if len(wrong):
            raise ValueError(
                f"`y` must lie between 0 and num_classes - 1, that is "
                f"{num_classes - 1}. Element {wrong[0]} is {y[wrong[0]]}."
            )
    return y
