"""Private attributes of Keras without a public equivalent, in one place.

All were checked on Keras 3.15.1. Elsewhere only `AlbertTextClassifierPreprocessor`
overrides a private hook of KerasHub 0.32, `_add_missing_kwargs`.
"""

from typing import Any, TypeAlias

import keras

# A variable of Keras or of its backend.
Variable: TypeAlias = Any


def inner_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return all layers inside a layer or model, at any depth.

    `Model.layers` ends at the first depth, and `Layer` has no public list of layers.
    """
    return list(layer._flatten_layers(include_self=False))


def freeze(layer: keras.layers.Layer) -> None:
    """Freeze a layer or model with all layers and weights inside it.

    On TensorFlow, Keras ignores `trainable = False` where the outer layer is frozen
    already, also if layers inside it are not.
    """
    layer.trainable = False
    for inner in inner_layers(layer):
        inner.trainable = False
    for weight in layer.weights:
        weight.trainable = False


def variable_index(optimizer: keras.optimizers.Optimizer, variable: Variable) -> int:
    """Return the position of a variable among those of an optimizer.

    `update_step` gets a variable of the backend, which has no public position.
    """
    return optimizer._get_variable_index(variable)


def adam_moments(
    optimizer: keras.optimizers.Adam | keras.optimizers.Lamb, variable: Variable
) -> tuple[keras.Variable, keras.Variable]:
    """Return the first and the second moment of a variable.

    `Optimizer.variables` has them in an order that depends on the other options.
    """
    index = variable_index(optimizer, variable)
    return optimizer._momentums[index], optimizer._velocities[index]


def moving_averages(optimizer: keras.optimizers.Optimizer) -> list[keras.Variable]:
    """Return the averages of `use_ema=True` in the order of the variables.

    The public `finalize_variable_values` only copies them to the variables.
    """
    return optimizer._model_variables_moving_average


def set_swapped(callback: keras.callbacks.SwapEMAWeights, is_swapped: bool) -> None:
    """Set whether a model already holds the averages that a callback puts into it."""
    callback._ema_weights_in_model = is_swapped
