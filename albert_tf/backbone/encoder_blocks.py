"""Encoder blocks of the layers of ALBERT, shared by groups."""

import functools
from typing import Any

from albert_tf.layers import AttentionBlock, EncoderBlock, FeedForwardBlock
from albert_tf_lite.errors import AlbertError

# Keras builds a model recursively, and Python ends a recursion.
MOST_BLOCKS = 500


def group_of_layer(layer: int, num_layers: int, num_groups: int) -> int:
    """Return the group of a layer, as in `transformer_model` of Google's code."""
    return int(layer / (num_layers / num_groups))


def encoder_blocks(
    num_layers: int,
    num_attention_groups: int,
    num_ffn_groups: int,
    num_inner_repetitions: int,
    attention: dict[str, Any],
    feed_forward: dict[str, Any],
    **both: Any,
) -> list[EncoderBlock]:
    """Return the block of each layer, in order; layers share the same object.

    `attention` and `feed_forward` are the arguments of either half, `both` of both.
    """
    if num_layers * num_inner_repetitions > MOST_BLOCKS:
        raise AlbertError(
            f"`num_layers` must be at most {MOST_BLOCKS}, times "
            f"{num_inner_repetitions=}. Received: {num_layers}"
        )
    groups = (num_attention_groups, num_ffn_groups)
    if min(groups) < 1 or max(groups) > num_layers:
        raise AlbertError(
            "`num_attention_groups` and `num_ffn_groups` must be between 1 (shared by "
            "all layers) and `num_layers` (nothing shared). Received: "
            f"{num_attention_groups}, {num_ffn_groups} and {num_layers=}"
        )

    @functools.cache
    def half(cls, name, group, inner):
        arguments = attention if cls is AttentionBlock else feed_forward
        return cls(**arguments, **both, name=f"{name}_{group}_{inner}")

    @functools.cache
    def block(attention_group, ffn_group, inner):
        return EncoderBlock(
            feed_forward["intermediate_dim"],
            attention["num_heads"],
            attention=half(AttentionBlock, "attention", attention_group, inner),
            feed_forward=half(FeedForwardBlock, "feed_forward", ffn_group, inner),
            dtype=both["dtype"],
            name=f"encoder_block_{attention_group}_{ffn_group}_{inner}",
        )

    return [
        block(
            group_of_layer(layer, num_layers, num_attention_groups),
            group_of_layer(layer, num_layers, num_ffn_groups),
            inner,
        )
        for layer in range(num_layers)
        for inner in range(num_inner_repetitions)
    ]
