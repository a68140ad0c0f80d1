"""Pooling and heads of tasks as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from albert_tf.checkpoints.heads import HEADS


def _mean(network, states):
    graph = network.graph
    axis = graph.constant([1])
    masked = graph.node("Mul", states, network.mask)
    total = graph.node("ReduceSum", masked, axis, keepdims=0)
    count = graph.node("ReduceSum", network.mask, axis, keepdims=0)
    count = graph.node("Max", count, graph.constant(np.float32(1)))
    return graph.node("Div", total, count)


def _max(network, states):
    graph = network.graph
    is_token = graph.node("Cast", network.mask, to=9)
    lowest = graph.constant(np.float32("-inf"))
    states = graph.node("Where", is_token, states, lowest)
    return graph.node("ReduceMax", states, axes=[1], keepdims=0)


def _first_last_mean(network, states):
    graph = network.graph
    both = graph.node("Add", _mean(network, states[1]), _mean(network, states[-1]))
    return graph.node("Mul", both, graph.constant(np.float32(0.5)))


# As `albert_tf.models.pooling.POOLING_MODES`.
_POOLING = {
    "cls": lambda network: network.first_position(network.states(first_only=True)[-1]),
    "mean": lambda network: _mean(network, network.states()[-1]),
    "max": lambda network: _max(network, network.states()[-1]),
    "first_last_mean": lambda network: _first_last_mean(network, network.states()),
}


def add_head(task: Any, network: Any) -> str:
    """Add the head of a task, and return the name of its output.

    Args:
        task: a task with a dense head, or an `AlbertTextEmbedder`.
        network: the network of its backbone.
    """
    graph = network.graph
    if task.heads:
        head = HEADS[task.heads[0]]
        if head.reads == "sequence":
            given = network.states()[-1]
        elif (mode := getattr(task, "pooling_mode", "cls")) == "cls":
            given = network.pooled()
        else:
            given = _POOLING[mode](network)
        return graph.dense(getattr(task, head.attribute), given)
    vectors = _POOLING[task.pooling_mode](network)
    if not task.normalize:
        return vectors
    length = graph.node("ReduceL2", vectors, axes=[-1], keepdims=1)
    smallest = graph.constant(np.float32(1e-7))
    return graph.node("Div", vectors, graph.node("Max", length, smallest))
