"""Activations of ALBERT by name."""

from collections.abc import Callable
from typing import TypeAlias

import keras

from albert_tf.layers.tensor_types import Tensor

Activation: TypeAlias = str | Callable[[Tensor], Tensor]


def gelu_approximate(x: Tensor) -> Tensor:
    """Compute the tanh form of GELU, which both original code bases call "gelu"."""
    return keras.activations.gelu(x, approximate=True)


def get_activation(identifier: Activation | None) -> Callable[[Tensor], Tensor]:
    """Return an activation by its name in Keras, or `"gelu_approximate"`."""
    if identifier == "gelu_approximate":
        return gelu_approximate
    return keras.activations.get(identifier)
