"""What every layer of ALBERT shares: activations, dense layers, LayerNorm."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras

# A tensor of Keras' backend, symbolic or not, or what converts to one.
Tensor: TypeAlias = Any
Activation: TypeAlias = str | Callable[[Tensor], Tensor]
Policy: TypeAlias = str | keras.DTypePolicy | None

# Both original code bases use 1e-12 everywhere, in the MLM head too.
LAYER_NORM_EPSILON = 1e-12


def gelu_approximate(x: Tensor) -> Tensor:
    """The tanh form of GELU, which both original code bases call "gelu"."""
    return keras.activations.gelu(x, approximate=True)


def get_activation(identifier: Activation | None) -> Callable[[Tensor], Tensor]:
    """Look up an activation, `"gelu_approximate"` among Keras' own names."""
    if identifier == "gelu_approximate":
        return gelu_approximate
    return keras.activations.get(identifier)


def serialize_activation(activation: Callable[[Tensor], Tensor]) -> str | dict:
    """The inverse of `get_activation`, for `get_config`."""
    if activation is gelu_approximate:
        return "gelu_approximate"
    return keras.activations.serialize(activation)


def albert_initializer(stddev: float = 0.02) -> keras.initializers.Initializer:
    """How every matrix of ALBERT begins (`create_initializer` of the paper's code)."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


def at_least_float32(dtype: str) -> str:
    """What to sum many numbers in, or take a loss of, where `dtype` is computed in."""
    return keras.backend.result_type(dtype, "float32")


def policy_at(dtype: Policy, path: str) -> Policy:
    """The policy of the layer that is built at a path.

    A quantized model is built from a map of policies by path. Keras cannot save layers
    that hold the map itself.
    """
    if isinstance(dtype, keras.dtype_policies.DTypePolicyMap):
        return dtype[path]
    return dtype


def dense_in(
    owner: keras.layers.Layer, name: str, units: int, **kwargs: Any
) -> keras.layers.Dense:
    """A dense layer inside another, initialised as all of ALBERT's are."""
    kwargs.setdefault("kernel_initializer", albert_initializer())
    dtype = policy_at(owner.dtype_policy, f"{owner.path}/{name}")
    return keras.layers.Dense(units, dtype=dtype, name=name, **kwargs)


def layer_norm(**kwargs: Any) -> keras.layers.LayerNormalization:
    """A LayerNormalization with ALBERT's epsilon."""
    return keras.layers.LayerNormalization(epsilon=LAYER_NORM_EPSILON, **kwargs)
