"""The graph of a model without one of its layers."""

from __future__ import annotations

import keras


def pass_through(
    model: keras.Model, layer: keras.layers.Layer, inputs: dict | None = None
) -> keras.Model:
    """A model that gives on what a layer is given, and has all other layers in common.

    Args:
        model: a functional model.
        layer: one of its layers, called once in it.
        inputs: optional dict of `keras.Input`, instead of those of the model.
    """

    def call(operation, *args, **kwargs):
        return args[0] if operation is layer else operation(*args, **kwargs)

    # A plain model: Keras would compile the copy of one that is compiled.
    plain = keras.Model(model.input, model.output)
    return keras.models.clone_model(
        plain,
        input_tensors=inputs,
        clone_function=lambda layer: layer,
        call_function=call,
    )
