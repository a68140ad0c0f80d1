"""One table per layout: the name of each weight in the files of a family."""

from collections.abc import Iterable
from typing import Any

from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import Layout, Tensors
from albert_tf.checkpoints.layouts.huggingface import HUGGINGFACE
from albert_tf.checkpoints.layouts.kerashub import KERASHUB
from albert_tf.checkpoints.layouts.original import ALBERT_ZH, GOOGLE

LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH, HUGGINGFACE, KERASHUB)}
# The parts that exist once per group and inner layer.
_BLOCKS = ("attention", "feed_forward")
# Fields of a config of Keras that are no arguments of the architecture.
_OF_KERAS = ("name", "trainable", "dtype", "quantized_layers", "lora")


def original_layout(arguments: dict[str, Any]) -> Layout:
    """Return the `Layout` of the original code that has a backbone's embedding."""
    is_first = arguments["embedding_projection"] == "before_layer_norm"
    return ALBERT_ZH if is_first else GOOGLE


def own_layout(arguments: dict[str, Any]) -> Layout:
    """Return the `Layout` of the `.keras` files and presets of an `AlbertBackbone`.

    Each weight has its own name, so that it can hold any model.
    """
    attributes: dict[str, Iterable[str]] = dict(original_layout(arguments).weights)
    for part, head in HEADS.items():
        attributes[part] = head.weights
    weights: dict[str, dict[str, str | Tensors]] = {}
    for part, paths in attributes.items():
        scope = f"{part}_{{group}}_{{inner}}" if part in _BLOCKS else part
        weights[part] = {path: f"{scope}/{path}" for path in paths}
    return Layout(
        name="keras",
        signature="embedding/token_table",
        weights=weights,
        fixed={x: y for x, y in arguments.items() if x not in _OF_KERAS},
    )
