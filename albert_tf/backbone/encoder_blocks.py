"""Which encoder block each layer of ALBERT runs."""

import functools
import numbers
from typing import Any

from albert_tf.layers import AttentionBlock, EncoderBlock, FeedForwardBlock


def check_sizes(num_layers: int, num_heads: int, hidden_dim: int, **sizes: int) -> None:
    """Refuse sizes that no model can have.

    Raises:
        ValueError: if one is no whole number above 0, `num_heads` does not divide
            `hidden_dim`, or there are more groups than layers.
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, **sizes)
    for name, size in dict(sizes, hidden_dim=hidden_dim).items():
        whole = isinstance(size, numbers.Integral) and not isinstance(size, bool)
        if not whole or size < 1:
            raise ValueError(
                f"`{name}` must be a whole number above 0. Received: {name}={size!r}"
            )
    if hidden_dim % num_heads:
        raise ValueError(
            "`hidden_dim` must be a multiple of `num_heads`. "
            f"Received: hidden_dim={hidden_dim}, num_heads={num_heads}"
        )
    for name in ("num_attention_groups", "num_ffn_groups"):
        if sizes[name] > num_layers:
            raise ValueError(
                f"`{name}` must lie between 1 (shared by all layers) and "
                f"`num_layers` (nothing shared). Received: {name}={sizes[name]}, "
                f"num_layers={num_layers}"
            )


def group_of_layer(layer: int, num_layers: int, num_groups: int) -> int:
    """The group whose parameters a layer uses (`transformer_model` of Google)."""
    return int(layer / (num_layers / num_groups))


def encoder_blocks(
    num_layers: int,
    num_attention_groups: int,
    num_ffn_groups: int,
    num_inner_repetitions: int,
    config: dict[str, Any],
) -> list[EncoderBlock]:
    """The block each layer runs, in order; shared ones are the same object.

    Args:
        num_layers, num_attention_groups, num_ffn_groups, num_inner_repetitions: ints,
            as `AlbertBackbone` takes them.
        config: dict, the other arguments of `EncoderBlock`.
    """

    def pick(*names):
        return {name: config[name] for name in (*names, "normalize_first", "dtype")}

    @functools.cache
    def attention(group, inner):
        return AttentionBlock(
            **pick("num_heads", "hidden_dropout", "attention_dropout"),
            name=f"attention_{group}_{inner}",
        )

    @functools.cache
    def feed_forward(group, inner):
        return FeedForwardBlock(
            **pick("intermediate_dim", "activation", "hidden_dropout"),
            name=f"feed_forward_{group}_{inner}",
        )

    @functools.cache
    def block(attention_group, ffn_group, inner):
        return EncoderBlock(
            **config,
            attention=attention(attention_group, inner),
            feed_forward=feed_forward(ffn_group, inner),
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
