"""Pooling of the hidden states of a text into one vector."""

from typing import Any

from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.layers.tensor_types import Tensor, at_least_float32
from albert_tf_lite.errors import AlbertError


def _mean(hidden, mask):
    return ops.sum(hidden * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1)


def _max(hidden, mask):
    return ops.max(ops.where(mask > 0, hidden, float("-inf")), axis=1)


# By name, functions of the hidden states of all layers, a list of tensors
# [batch, time, hidden] with the embedding first, and of the mask [batch, time, 1].
POOLING_MODES = {
    "cls": lambda states, mask: states[-1][:, 0],
    "mean": lambda states, mask: _mean(states[-1], mask),
    "max": lambda states, mask: _max(states[-1], mask),
    # The first layer is the first block, as in CoSENT's code, not the embedding.
    "first_last_mean": lambda states, mask: (
        (_mean(states[1], mask) + _mean(states[-1], mask)) / 2
    ),
}


def default_pooling(backbone: AlbertBackbone) -> str:
    """Return the mode that suits the weights; `"cls"` if none is known."""
    return backbone.fine_tuning.get("pooling_mode", "cls")


def pool_states(
    backbone: AlbertBackbone, mode: str, states: list[Tensor], mask: Tensor
) -> Tensor:
    """Return a vector per text, [batch, hidden_dim], from the states of the layers.

    In float32 at least, whatever the backbone computes in: it adds hundreds of numbers.
    """
    if mode not in POOLING_MODES:
        raise AlbertError(
            f"`pooling_mode` should be one of {list(POOLING_MODES)}. Received: {mode!r}"
        )
    dtype = at_least_float32(backbone.compute_dtype)
    states = [ops.cast(state, dtype) for state in states]
    return POOLING_MODES[mode](states, ops.expand_dims(ops.cast(mask, dtype), -1))


def pool_layers(
    backbone: AlbertBackbone, mode: str, states: list[Tensor], mask: Tensor
) -> Tensor:
    """Return `pool_states`, but `"cls"` is the backbone's `pooled_output`."""
    if mode == "cls":
        pooler: Any = backbone.pooled_dense
        return pooler(states[-1][:, 0, :])
    return pool_states(backbone, mode, states, mask)


def pool_text(backbone: AlbertBackbone, mode: str) -> Tensor:
    """Return `pool_layers` of the backbone's inputs, as a graph."""
    if mode == "cls":
        return backbone.pool(backbone.input)
    states = backbone.with_intermediates().output["hidden_states"]
    return pool_states(backbone, mode, states, backbone.input["padding_mask"])
