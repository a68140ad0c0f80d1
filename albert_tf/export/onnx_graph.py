"""The network of a task as an ONNX graph, written from the layers of `AlbertBackbone`.

There is one block, and no converter between: layers that share weights name the same
ones, where a converter of traced graphs writes them for each layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from albert_tf.export.onnx_heads import add_head
from albert_tf.export.onnx_nodes import Nodes
from albert_tf.layers.attention_block import MASKED_SCORE
from albert_tf.layers.common import LAYER_NORM_EPSILON
from albert_tf.models.task import AlbertTask
from albert_tf_lite.extra import import_extra

# The oldest with LayerNormalization, which Triton's and OpenVINO's releases read too.
OPSET = 17
IR_VERSION = 8


def build_model(task: AlbertTask, output: str) -> Any:
    """An `onnx.ModelProto` of a task.

    Args:
        task: a task that `add_head` knows.
        output: string, the name of what it gives.

    Raises:
        AlbertError: if ONNX has no such activation.
    """
    onnx = import_extra("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    graph = Nodes(onnx)
    result = add_head(task, Network(graph, task.backbone))
    graph.node("Identity", result, output=output)
    axes = ["batch", "time"]
    shape = [axes.pop(0) if x is None else x for x in task.output.shape]
    names = list(task.input)
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            type(task).__name__,
            [
                helper.make_tensor_value_info(x, types.INT32, ["batch", "time"])
                for x in names
            ],
            [helper.make_tensor_value_info(output, types.FLOAT, shape)],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="albert_tf",
    )


class Network:
    """The tensors of a backbone, by name; each call adds their nodes."""

    def __init__(self, graph, backbone):
        self.graph = graph
        self.backbone = backbone
        mask = graph.node("Cast", "padding_mask", to=1)
        # [batch, time, 1], 1 for a token.
        self.mask = graph.node("Unsqueeze", mask, graph.constant([2]))
        blocked = graph.node("Sub", graph.constant(np.float32(1)), mask)
        blocked = graph.node("Unsqueeze", blocked, graph.constant([1, 2]))
        # [batch, 1, 1, time], what is added to the score of each key.
        self.key_bias = graph.node(
            "Mul", blocked, graph.constant(np.float32(MASKED_SCORE))
        )

    def states(self, first_only=False):
        """The output of the embedding and of each block.

        Args:
            first_only: bool. Of the last block only the first position.
        """
        states = [self._embedding(self.backbone.embedding)]
        *blocks, last = self.backbone.encoder_blocks
        for block in blocks:
            states.append(self._block(block, states[-1]))
        states.append(self._block(last, states[-1], first_only))
        return states

    def pooled(self):
        """The pooled output [batch, hidden_dim]."""
        x = self.first_position(self.states(first_only=True)[-1])
        return self.graph.dense(self.backbone.pooled_dense, x)

    def first_position(self, x):
        return self.graph.node("Gather", x, self.graph.constant(0), axis=1)

    def _embedding(self, layer):
        graph = self.graph
        table = graph.weight(layer.token_embedding.embeddings, layer.token_embedding)
        x = graph.node("Gather", table, "token_ids")
        if layer.project_first:
            x = graph.dense(layer.projection, x)
        segments = graph.weight(layer.segment_table)
        x = graph.node("Add", x, graph.node("Gather", segments, "segment_ids"))
        shape = graph.node("Shape", "token_ids", start=1)
        positions = graph.weight(layer.position_table)
        zero = graph.constant([0])
        positions = graph.node("Slice", positions, zero, shape, zero)
        x = self._layer_norm(layer.layer_norm, graph.node("Add", x, positions))
        return x if layer.project_first else graph.dense(layer.projection, x)

    def _block(self, block, x, first_only=False):
        return self._feed_forward(
            block.feed_forward, self._attention(block.attention, x, first_only)
        )

    def _attention(self, half, inputs, first_only):
        graph = self.graph
        x = (
            self._layer_norm(half.layer_norm, inputs)
            if half.normalize_first
            else inputs
        )
        x = graph.dense(half.query_key_value, x)
        width = half.num_heads * half.head_dim
        sizes = graph.constant([width] * 3)
        query, key, value = graph.node("Split", x, sizes, axis=-1, outputs=3)
        if first_only:
            query, inputs = self._first(query), self._first(inputs)
        shape = graph.constant([0, 0, half.num_heads, half.head_dim])
        query, key, value = (
            graph.node("Transpose", graph.node("Reshape", part, shape), perm=order)
            for part, order in (
                (query, [0, 2, 1, 3]),
                (key, [0, 2, 3, 1]),
                (value, [0, 2, 1, 3]),
            )
        )
        scale = graph.constant(np.float32(half.head_dim**-0.5))
        scores = graph.node("Mul", graph.node("MatMul", query, key), scale)
        scores = graph.node("Add", scores, self.key_bias)
        probabilities = graph.node("Softmax", scores, axis=-1)
        x = graph.node("MatMul", probabilities, value)
        x = graph.node("Transpose", x, perm=[0, 2, 1, 3])
        x = graph.node("Reshape", x, graph.constant([0, 0, width]))
        x = graph.node("Add", inputs, graph.dense(half.output_dense, x))
        return x if half.normalize_first else self._layer_norm(half.layer_norm, x)

    def _first(self, x):
        """The first position [batch, 1, ...]."""
        zero, one = self.graph.constant([0]), self.graph.constant([1])
        return self.graph.node("Slice", x, zero, one, one)

    def _feed_forward(self, half, inputs):
        graph = self.graph
        x = (
            self._layer_norm(half.layer_norm, inputs)
            if half.normalize_first
            else inputs
        )
        x = graph.dense(half.output_dense, graph.dense(half.intermediate_dense, x))
        x = graph.node("Add", inputs, x)
        return x if half.normalize_first else self._layer_norm(half.layer_norm, x)

    def _layer_norm(self, layer, x):
        weights = (self.graph.weight(layer.gamma), self.graph.weight(layer.beta))
        return self.graph.node(
            "LayerNormalization", x, *weights, axis=-1, epsilon=LAYER_NORM_EPSILON
        )
