"""Models of this package, which `.keras` files and presets hold."""

from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import Layout
from albert_tf.checkpoints.layouts.albert_zh import ALBERT_ZH
from albert_tf.checkpoints.layouts.google import GOOGLE

_BY_PROJECTION = {"before_layer_norm": ALBERT_ZH, "after_layer_norm": GOOGLE}

_NUMBERS = dict.fromkeys(("attention", "feed_forward"), "_{group}_{inner}")


def original_layout(arguments):
    """The `Layout` of the original code that has a backbone's embedding."""
    return _BY_PROJECTION[arguments["embedding_projection"]]


def own_layout(arguments):
    """The `Layout` of an `AlbertBackbone` of ours: each weight under its own name.

    Unlike the others it can hold any model.
    """
    heads = {part: head.axes for part, head in HEADS.items()}
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
            if name not in ("name", "trainable", "dtype", "quantized_layers")
        },
    )
