"""From the hidden states of a text to one vector."""

from keras import ops


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
