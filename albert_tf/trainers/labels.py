"""Labels as users pass them, as the numbers that losses read."""

import math
from collections.abc import Iterable, Sequence, Set

import keras
import numpy as np
import tensorflow as tf

from albert_tf.data.labels.cleaning import visible
from albert_tf.data.labels.separators import SEPARATORS
from albert_tf.trainers.examples import Column, Inputs, count_examples
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import (
    as_label,
    as_list,
    check_one_reading,
    check_positions,
    class_positions,
    complete,
    is_container,
    several_in,
    single_values,
)


def check_class_names(
    labels: Column | None, num_classes: int | None = None
) -> list[str | int | float] | None:
    """Return labels as a list of strings and numbers; raise unless all differ."""
    if labels is None:
        return None
    names = [as_label(x) for x in complete(as_list(labels, "labels"), "labels")]
    # Numbers may be equal, such as 1 and 1.0, and names may look alike.
    distinct_values = set(names)
    distinct_spellings = {visible(str(name)) for name in names}
    all_differ = len(distinct_values) == len(distinct_spellings) == len(names)
    has_other_count = num_classes is not None and num_classes != len(names)
    if not all_differ or has_other_count:
        raise AlbertError(
            f"`labels` must name each of the {num_classes or len(names)} classes, each "
            f"differently. Received {len(names)}: {names}"
        )
    return names


def class_order(stored: Column | None, given: Column | None) -> list[int] | None:
    """Return the stored position of each given class, if both name the same classes."""
    first, second = (list(map(str, labels or ())) for labels in (stored, given))
    if not first or sorted(first) != sorted(second):
        return None
    return [first.index(label) for label in second]


def class_ids(
    x: Inputs,
    y: Column | None,
    num_classes: int | None = None,
    labels: Sequence | None = None,
) -> np.ndarray:
    """Return one class id per text, given as ids or as values or names of `labels`.

    Without `num_classes`, any numbers are allowed, which is up to the loss.
    """
    rows = single_values(complete(check_count(x, y), "y"))
    are_lists = any(map(is_container, rows))
    are_floats = all(isinstance(row, (float, np.floating)) for row in rows)
    if num_classes is None and (are_lists or labels is None or are_floats):
        return _without_missing(rows)
    if labels is None or (are_lists and not _has_names(rows)):
        return check_positions(rows, num_classes or 0)
    return class_positions(rows, labels)


def _has_names(rows):
    """Return whether rows hold strings, and thus several labels."""
    rows = filter(is_container, rows)
    return any(isinstance(value, str) for row in rows for value in row)


def _without_missing(rows: list) -> np.ndarray:
    """Return numbers, or rows of numbers, as an array; raise if one is missing."""
    values = np.asarray(rows)
    if values.dtype.kind == "f" and np.isnan(values).any():
        row = int(np.argwhere(np.isnan(values))[0][0])
        raise AlbertError(
            f"Element {row} of `y` has a missing value: {rows[row]!r:.80}. Leave such "
            "examples out."
        )
    return values


def multi_hot(
    x: Inputs, y: Column | None, num_classes: int, labels: Sequence | None = None
) -> np.ndarray:
    """Return the classes of each text as 0 and 1, float32 [examples, classes].

    `y` is a list of names per text, such as `[["体育", "娱乐"], []]`, or such an array.
    """
    given = complete(check_count(x, y), "y")
    labels = labels or ()
    is_flat = any(
        isinstance(row, str) or not isinstance(row, Iterable) for row in given
    )
    lists = [] if is_flat else [_names_of(i, row) for i, row in enumerate(given)]
    values = [as_label(value) for row in lists for value in row]
    # Numbers may be labels; strings are checked below.
    are_names = all(isinstance(value, str) or value in labels for value in values)
    has_names = bool(labels) and are_names
    if _is_table(lists, values, num_classes):
        if has_names and not any(isinstance(value, bool) for value in values):
            raise AlbertError(
                "`y` has two readings: a row of 0 and 1 per text, or a list of the "
                f"classes {labels} per text. Pass strings for classes, or an array of "
                "bool."
            )
        return np.array(lists, "float32")
    if is_flat or not has_names:
        raise AlbertError(
            "`y` must be a list of class names per text, for a model with `labels=`, "
            f"or an array of 0 and 1 with {num_classes} columns, one per class. "
            f"Received: {str(given[:2]):.200}.{_advice_for_strings(given)}"
        )
    hot = np.zeros((len(lists), num_classes), "float32")
    row_of_value = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
    hot[row_of_value, class_positions(values, labels)] = 1
    return hot


def _is_table(rows, values, num_classes):
    """Return whether rows are 0 or 1 for each class."""
    are_full = bool(rows) and all(len(row) == num_classes for row in rows)
    return are_full and {0, 1}.issuperset(values)


def _names_of(position, row):
    """Return the classes of a text, also of a set."""
    name = f"y[{position}]"
    return complete(list(row) if isinstance(row, Set) else as_list(row, name), name)


def _advice_for_strings(values):
    """Return a sentence on how to make lists of names of strings, "" for others."""
    if not all(isinstance(value, str) for value in values):
        return ""
    mark = several_in(values, SEPARATORS)
    if mark is None:
        return " Pass [[name] for name in y] for one class per text."
    return (
        f" Pass [[name for name in value.split({mark!r}) if name] for value in y] for "
        f"names between {mark!r}."
    )


def dataset_targets(
    dataset: tf.data.Dataset, labels: Sequence, several: bool = False
) -> tf.data.Dataset:
    """Return a dataset of `(x, y, ...)` with ids in place of values of `labels`.

    With `several`, the names of an example become 0 and 1, float32 [batch, classes].
    """
    _, y, _ = keras.utils.unpack_x_y_sample_weight(dataset.element_spec)
    if y is None:
        return dataset
    is_name = y.dtype == tf.string
    shape = y.shape
    if not is_name and (several or shape[1:] not in ([], [1])):
        return dataset
    if not is_name and all(isinstance(label, str) for label in labels):
        check_one_reading(labels, "y")
        return dataset
    if is_name:
        classes = tf.constant([str(label) for label in labels])
    else:
        numbers = [math.nan if isinstance(x, str) else float(x) for x in labels]
        classes = tf.constant(numbers, tf.float64)
    message = f"The labels are not all among the classes {listed(labels, 10)}"
    targets = _multi_hot_tensor if several else _id_tensor

    def with_targets(x, y, *weights):
        if isinstance(y, tf.RaggedTensor):
            y = y.to_tensor("")
        return x, targets(y, classes, message), *weights

    return dataset.map(with_targets)


def _id_tensor(values, classes, message):
    """Return the position of each value in `classes`, int64."""
    is_class = tf.cast(values, classes.dtype)[..., tf.newaxis] == classes
    is_known = tf.reduce_any(is_class, axis=-1)
    check = tf.Assert(tf.reduce_all(is_known), [message, values])
    with tf.control_dependencies([check]):
        return tf.argmax(is_class, axis=-1)


def _multi_hot_tensor(names, classes, message):
    """Return 1 for each of `classes` that an example names, float32 [batch, classes].

    The names of an example may be followed by empty strings.
    """
    is_class = names[..., tf.newaxis] == classes
    is_known = tf.reduce_any(is_class, axis=-1) | (names == "")
    check = tf.Assert(tf.reduce_all(is_known), [message, names])
    with tf.control_dependencies([check]):
        return tf.cast(tf.reduce_any(is_class, axis=1), tf.float32)


def scores(x: Inputs, y: Column | None, name: str = "y") -> np.ndarray:
    """Return one finite number per text, float32 [examples]."""
    rows = single_values(complete(check_count(x, y, name), name))
    numbers = np.array([_finite(row) for row in rows], "float32")
    if wrong := np.flatnonzero(np.isnan(numbers)).tolist():
        raise AlbertError(
            f"`{name}` must be a list of finite numbers, one per text. Element "
            f"{wrong[0]} is {rows[wrong[0]]!r:.80}."
        )
    return numbers


def _finite(value):
    """Return a finite number in 32 bits, or NaN for any other value."""
    try:
        number = np.float32(value)
    except (TypeError, ValueError):
        return np.nan
    return number if np.ndim(number) == 0 and np.isfinite(number) else np.nan


def check_count(x: Inputs, y: Column | None, name: str = "y") -> list:
    """Return `y` as a list. Raise if it has not one element per example, or none."""
    rows = [] if y is None else as_list(y, name)
    texts = count_examples(x)
    if not rows or texts != len(rows):
        raise AlbertError(
            f"`x` and `{name}` must have the same number of examples, at least one. "
            f"Received: {texts} texts and {len(rows)} labels."
        )
    return rows
