"""One table per layout: the name of each weight in the files of a family."""

from typing import Any

from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import Layout
from albert_tf.checkpoints.layouts.huggingface import HUGGINGFACE
from albert_tf.checkpoints.layouts.kerashub import KERASHUB
from albert_tf.checkpoints.layouts.original import ALBERT_ZH, GOOGLE

LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH, HUGGINGFACE, KERASHUB)}
_NUMBERS = dict.fromkeys(("attention", "feed_forward"), "_{group}_{inner}")


def original_layout(arguments: dict[str, Any]) -> Layout:
    """Return the `Layout` of the original code that has a backbone's embedding."""
    is_first = arguments["embedding_projection"] == "before_layer_norm"
    return ALBERT_ZH if is_first else GOOGLE


def own_layout(arguments: dict[str, Any]) -> Layout:
    """Return the `Layout` of the `.keras` files and presets of an `AlbertBackbone`.

    Each weight has its own name, so that it can hold any model.
    """
    heads = {part: head.weights for part, head in HEADS.items()}
    weights = {**original_layout(arguments).weights, **heads}
    return Layout(
        name="keras",
        signature="embedding/token_table",
        weights={
            part: {
                attribute: f"{part}{_NUMBERS.get(part, '')}/{attribute}"
                for attribute in attributes
            }
            for part, attributes in weights.items()
        },
        fixed={
            name: value
            for name, value in arguments.items()
            if name not in ("name", "trainable", "dtype", "quantized_layers", "lora")
        },
    )
