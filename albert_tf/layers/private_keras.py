"""Private attributes of Keras that have no public equivalent, in one place."""

from __future__ import annotations

import keras


def inner_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return all layers inside a layer or model, at any depth.

    The public `Model.layers` ends at the first depth, and a `Layer` has no public list
    of its layers. Checked on Keras 3.15.1.
    """
    return list(layer._flatten_layers(include_self=False))
