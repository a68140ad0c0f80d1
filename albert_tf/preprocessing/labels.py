"""Labels as `fit` is given them: names, class ids, lists of names, scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.examples import check_class_ids, count_examples
from albert_tf_lite.errors import AlbertError


def class_ids(
    x: Any, y: Any, num_classes: int | None = None, labels: Sequence[str] | None = None
) -> np.ndarray:
    """One class a text, as an array.

    Args:
        x: the texts.
        y: names of `labels`, or int array [examples].
        num_classes: optional int, which all ids must be below.
        labels: optional list of strings, the names of the classes.
    """
    if labels is not None and y is not None:
        given = np.asarray(y)
        if given.dtype.kind in "UO" and all(isinstance(name, str) for name in given):
            y = _positions(given, labels)
    return check_class_ids(x, y, num_classes)


def dataset_class_ids(dataset: tf.data.Dataset, labels: Sequence[str]):
    """A dataset of `(x, y, ...)` whose `y` are names of classes, with ids instead.

    One without `y`, or whose `y` are numbers, is returned.
    """
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2 or spec[1].dtype != tf.string:
        return dataset
    ids = tf.range(len(labels))
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(labels), ids), -1
    )

    def with_ids(x, y, *rest):
        ids = table.lookup(y)
        message = f"A label is not among the classes {labels}."
        with tf.control_dependencies([tf.debugging.assert_non_negative(ids, message)]):
            return x, tf.identity(ids), *rest

    return dataset.map(with_ids)


def multi_hot(
    x: Any, y: Any, num_classes: int, labels: Sequence[str] | None = None
) -> np.ndarray:
    """Any number of classes a text, as a float32 array of 0 and 1 [examples, classes].

    Args:
        x: the texts.
        y: a list of names for each text, `[["体育", "娱乐"], []]`, or such an array.
        num_classes: int.
        labels: optional list of strings, the names of the classes.
    """
    _check_count(x, y)
    if _are_numbers(y):
        return _check_multi_hot(y, num_classes)
    if labels is None:
        raise AlbertError(
            "`y` has names of classes, which this model does not know. Build it with "
            "`labels=`, or give an array of 0 and 1, a column a class."
        )
    for position, row in enumerate(y):
        if isinstance(row, str):
            raise AlbertError(
                "A multi-label model takes a list of labels for each text. Element "
                f"{position} of `y` is {row!r}: write [{row!r}]."
            )
    hot = np.zeros((len(y), num_classes), "float32")
    rows = np.repeat(np.arange(len(y)), [len(row) for row in y])
    hot[rows, _positions([name for row in y for name in row], labels)] = 1
    return hot


def scores(x: Any, y: Any) -> np.ndarray:
    """A finite number a text, as a float32 array [examples]."""
    _check_count(x, y)
    try:
        given = np.asarray(y, "float32")
    except (TypeError, ValueError):
        given = None
    if given is None or given.ndim != 1 or not np.isfinite(given).all():
        raise AlbertError(
            f"`y` must be a list of finite numbers, one a text. Received: {list(y)[:3]}"
        )
    return given


def _check_count(x, y):
    texts, labels = count_examples(x), 0 if y is None else len(y)
    if not labels or texts != labels:
        raise AlbertError(
            "`x` and `y` must have the same number of examples, at least one. "
            f"Received: {texts} texts and {labels} labels."
        )


def _are_numbers(y):
    first = next((value for row in y if np.ndim(row) for value in row), "")
    return not isinstance(first, str)


def _check_multi_hot(y, num_classes):
    widths = {np.size(row) for row in y}
    hot = np.asarray(y) if widths == {num_classes} else None
    if hot is None or not np.isin(hot, (0, 1)).all():
        raise AlbertError(
            f"`y` must be lists of labels, or an array of 0 and 1 with {num_classes} "
            f"columns, one a class. Received: {y[:2]}"
        )
    return hot.astype("float32")


def _positions(names: Iterable[str], labels: Sequence[str]) -> np.ndarray:
    positions = {label: position for position, label in enumerate(labels)}
    unknown = sorted({str(name) for name in names} - positions.keys())
    if unknown:
        raise AlbertError(
            f"The labels {unknown[:5]} are not among the classes {list(labels)}."
        )
    return np.array([positions[name] for name in names], "int32")
