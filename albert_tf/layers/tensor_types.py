"""Annotations for tensors, their shapes and dtypes."""

from typing import Any, TypeAlias

import keras

# A tensor of Keras' backend, symbolic or not, or an array.
Tensor: TypeAlias = Any
# The last axis, which layers build on, is always known.
Shape: TypeAlias = tuple[Any, ...]
Policy: TypeAlias = str | keras.DTypePolicy | None


def at_least_float32(dtype: str) -> str:
    """Return the type for sums and losses of values of type `dtype`."""
    return keras.backend.result_type(dtype, "float32")
