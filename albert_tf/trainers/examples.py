"""Examples as a user passes them to `fit`, `evaluate` and `predict`, read once."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from albert_tf.layers.tensor_types import Tensor
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_list, as_texts

# One value per example in any container that is read by position.
Column: TypeAlias = Iterable[Any]
# Texts; the tuple of the parts of each example; padded ids by name; or batches.
Inputs: TypeAlias = Column | tuple[Column, ...] | Mapping[str, Tensor] | tf.data.Dataset


@dataclasses.dataclass(frozen=True)
class Examples:
    """Examples with their labels and weights.

    Attributes:
        kind: `"texts"` in memory, padded `"ids"` in memory, or a `"dataset"` of
            batches.
        x: for texts a list of strings, or the tuple of the parts of each example, such
            as two lists for pairs; else ids or a dataset as they were passed.
        y: labels in the form of the task, `None` if there are none or in a dataset.
        sample_weight: one weight per example, `None` if there are none or in a dataset.
    """

    kind: Literal["texts", "ids", "dataset"]
    x: Any
    y: Any = None
    sample_weight: Any = None

    @functools.cached_property
    def are_texts(self) -> bool:
        """True if the examples are strings, in memory or in a dataset."""
        if self.kind != "dataset":
            return self.kind == "texts"
        leaves = tf.nest.flatten(_inputs_spec(self.x))
        return all(leaf.dtype == tf.string for leaf in leaves)

    @functools.cached_property
    def is_pair(self) -> bool | None:
        """True for texts of several parts; `None` for ids, which do not show it."""
        if not self.are_texts:
            return None
        x = _inputs_spec(self.x) if self.kind == "dataset" else self.x
        return isinstance(x, tuple) and len(x) > 1

    @property
    def parts(self) -> tuple[Any, ...]:
        """A list for each part of the texts in memory, also for a single one."""
        return self.x if isinstance(self.x, tuple) else (self.x,)

    @functools.cached_property
    def count(self) -> int | None:
        """The number of examples; `None` for a dataset."""
        return None if self.kind == "dataset" else count_examples(self.x)

    def take(self, rows: slice) -> "Examples":
        """Return some of the examples, by position."""
        parts = tuple(_take(part, rows) for part in self.parts)
        x = parts if isinstance(self.x, tuple) else parts[0]
        labels, weights = _take(self.y, rows), _take(self.sample_weight, rows)
        return Examples(self.kind, x, labels, weights)

    def split_off(self, share: float) -> "tuple[Examples, Examples]":
        """Return all but the last `share` of the examples, and these."""
        if self.count is None:
            refuse_for_datasets(validation_split=share)
        if not 0 < share < 1:
            raise AlbertError(
                f"`validation_split` must lie between 0 and 1. Received: {share}"
            )
        start = int((self.count or 0) * (1 - share))
        return self.take(slice(start)), self.take(slice(start, None))

    def in_memory(self) -> "Examples":
        """Return the texts of a dataset as lists, without labels; others unchanged."""
        if self.kind != "dataset" or not self.are_texts:
            return self
        batches = [keras.utils.unpack_x_y_sample_weight(batch)[0] for batch in self.x]
        columns = zip(*map(tf.nest.flatten, batches), strict=True)
        parts = tuple(as_texts(np.concatenate(column)) for column in columns)
        return Examples("texts", parts if self.is_pair else parts[0])


# The `validation_data` of `fit`: a dataset or `(x, y)`, `(x, y, sample_weight)`.
ValidationData: TypeAlias = Examples | tf.data.Dataset | Sequence | None


def read_examples(
    x: Inputs | Examples,
    y: Column | None = None,
    sample_weight: Column | None = None,
    *,
    takes_texts: bool = True,
) -> Examples:
    """Read the arguments of `fit`, `evaluate` or `predict`.

    Args:
        x: texts, ids or a dataset, or `Examples`, which are returned.
        y: optional labels, in the form of the task.
        sample_weight: optional weights.
        takes_texts: bool. The task has a preprocessor; else data in memory are ids.

    Raises:
        TypeError: if `x` is a single text, or a container that cannot be read.
        AlbertError: if labels or weights are given beside a dataset, or its elements
            are single texts.
    """
    if isinstance(x, Examples):
        return x
    _check_container(x)
    if isinstance(x, tf.data.Dataset):
        refuse_for_datasets(y=y, sample_weight=sample_weight)
        return Examples("dataset", check_batched(x))
    if not takes_texts or _is_ids(x):
        return Examples("ids", x, y, sample_weight)
    if isinstance(x, tuple):
        texts: Any = tuple(_as_texts(part, f"x[{i}]") for i, part in enumerate(x))
    else:
        texts = _as_texts(x, "x")
    labels, weights = _as_column(y, "y"), _as_column(sample_weight, "sample_weight")
    return Examples("texts", texts, labels, weights)


def validation_arguments(data: ValidationData) -> tuple[Any, ...]:
    """Return the `validation_data` of `fit` as `x`, or `x`, labels and weights."""
    # Keras takes a list of (x, y), too.
    if isinstance(data, list) and data and not isinstance(data[0], str):
        return tuple(data)
    return data if isinstance(data, tuple) else (data,)


def count_examples(x: Inputs) -> int:
    """Return the number of texts, tuples of texts, or rows of ids."""
    first: Any = x
    if isinstance(x, Mapping):
        first = next(iter(x.values()))
    elif isinstance(x, tuple):
        first = x[0]
    return len(first)


def refuse_for_datasets(**options: Any) -> None:
    """Raise if an argument is given that is for lists of texts only."""
    for name, value in options.items():
        if value is not None:
            raise AlbertError(
                f"`{name}` is for lists of texts. Pass batches (x, y) or (x, y, "
                "sample_weight); `albert_tf.models.bucket_by_length` makes batches of "
                "`max_tokens`."
            )


def check_batched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return the dataset. Raise if its elements are single texts."""
    first = tf.nest.flatten(dataset.element_spec)[0]
    if first.dtype == tf.string and first.shape.rank == 0:
        raise AlbertError(
            "The elements of the dataset are single texts. Expected batches: pass "
            "`dataset.batch(32)`."
        )
    return dataset


def _check_container(x):
    """Raise if `x` is a single text, or of a type that no task reads."""
    parts = x if isinstance(x, tuple) else (x,)
    if any(isinstance(part, (str, bytes)) for part in parts):
        raise TypeError(
            "`x` must be a list of strings, or the tuple of two such lists, "
            f"not one example. Received: {x!r}"
        )
    if isinstance(x, (Iterator, keras.utils.PyDataset)):
        raise TypeError(
            f"`x` is a {type(x).__name__}. Pass a list of texts, or batches as a "
            "dataset: tf.data.Dataset.from_generator(function, "
            "output_signature=(tf.TensorSpec([None], tf.string), "
            "tf.TensorSpec([None], tf.int64)))."
        )
    if x is None:
        raise TypeError("`x` is missing. Pass a list of texts, ids or a dataset.")


def _is_ids(x):
    """Return whether `x` are ids by name; raise if a dict holds something else."""
    if isinstance(x, dict) and "token_ids" not in x:
        raise TypeError(
            f"`x` is a {type(x).__name__} of {list(x)[:5]}. Pass texts, such as a "
            "column, or the ids that the model takes."
        )
    return isinstance(x, dict)


def _as_texts(texts, name):
    # Tensors of several axes are the choices of examples.
    is_table = tf.is_tensor(texts) and texts.shape.rank != 1
    return texts if is_table else as_texts(texts, name)


def _as_column(values, name):
    is_ready = values is None or tf.is_tensor(values) or isinstance(values, np.ndarray)
    return values if is_ready else as_list(values, name)


def _take(values, rows):
    """Return rows of a column, or of a dict of columns."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: _take(column, rows) for name, column in values.items()}
    # By position, also for a Series.
    return getattr(values, "iloc", values)[rows]


def _inputs_spec(dataset):
    """Return the type specification of `x` in the batches of a dataset."""
    x, _, _ = keras.utils.unpack_x_y_sample_weight(dataset.element_spec)
    return x
