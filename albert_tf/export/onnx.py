"""Write ONNX files from the layers of a task.

The graph holds shared weights once. A converter of traced graphs would write them for
each layer.
"""

import json
import os
import tempfile
from pathlib import Path

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.checkpoints.heads import HEADS
from albert_tf.export.description import describe
from albert_tf.export.onnx_graph import Graph
from albert_tf.files import complete_file
from albert_tf.layers.attention_block import MASKED_SCORE
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import import_extra
from albert_tf_lite.exported_model import SETTINGS


def onnx(
    task: AlbertTask, path: str | os.PathLike, *, precision: str = "float32"
) -> None:
    """Write an ONNX file, for ONNX Runtime, OpenVINO and Triton.

    The file takes `token_ids`, `segment_ids` and `padding_mask`, int32 [batch, time],
    of any batch and of any length up to the model's positions. It holds shared weights
    once. The metadata hold the settings and the vocabulary, so that
    `albert_tf_lite.OnnxModel` takes strings, without TensorFlow.

    Args:
        task: as in `albert_tf.export.litert`.
        path: path of the file, such as `"model.onnx"`.
        precision: `"float32"`, or `"int8"` for a quarter of the size and more speed
            (weights in 8 bits, activations quantized when they are computed).

    Raises:
        ImportError: if onnx, or for int8 onnxruntime, is not installed.
        AlbertError: if the class of the task, `precision` or the activation is not
            supported, or the model has no preprocessor or is quantized.

    Example:
    ```python
    albert_tf.export.onnx(classifier, "model.onnx", precision="int8")
    albert_tf.export.OnnxModel("model.onnx").predict(["很好"])
    ```
    """
    library = import_extra("onnx")
    settings = describe(task, precision, ("float32", "int8"))
    model = _build(task, settings["output"], library)
    if precision == "int8":
        model = _quantize(model, library)
    text = json.dumps(settings, ensure_ascii=False)
    library.helper.set_model_props(model, {SETTINGS: text})
    with complete_file(path) as temporary:
        temporary.write_bytes(model.SerializeToString())


def _build(task, output, library):
    """Return the `onnx.ModelProto` of a task."""
    graph = Graph(library)
    network = _Network(graph, task.backbone)
    graph.node("Identity", _head(task, network), output=output)
    return graph.model(list(task.input), output, task.output.shape)


def _quantize(model, library):
    """Return the model with weights in 8 bits and dynamic quantization."""
    quantization = import_extra("onnxruntime.quantization")
    # Avoids a warning about preprocessing, which this graph does not need.
    library.helper.set_model_props(
        model, {"onnx.quant.pre_process": "onnxruntime.quant"}
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "int8.onnx")
        quantization.quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul", "Gather"],
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            # 7 bits, because with 8 sums overflow on processors without VNNI.
            reduce_range=True,
        )
        return library.load(path)


class _Network:
    """Nodes of a backbone; methods return names of tensors."""

    def __init__(self, graph: Graph, backbone: AlbertBackbone):
        self.graph = graph
        self.backbone = backbone
        mask = graph.node("Cast", "padding_mask", to=1)
        # [batch, time, 1], 1 for a token.
        self.mask = graph.node("Unsqueeze", mask, [2])
        blocked = graph.node("Unsqueeze", graph.node("Sub", 1.0, mask), [1, 2])
        # [batch, 1, 1, time], added to the score of each key.
        self.key_bias = graph.node("Mul", blocked, MASKED_SCORE)

    def states(self, first_only: bool = False) -> list[str]:
        """Return the outputs of the embedding and of each block.

        With `first_only` the last block computes the first position only.
        """
        states = [self._embedding(self.backbone.embedding)]
        *blocks, last = self.backbone.encoder_blocks
        for block in blocks:
            states.append(self._block(block, states[-1]))
        return [*states, self._block(last, states[-1], first_only)]

    def first_state(self) -> str:
        """Return the last state of `[CLS]`."""
        return self.graph.node("Gather", self.states(first_only=True)[-1], 0, axis=1)

    def _embedding(self, layer):
        graph = self.graph
        table = graph.weight(layer.token_embedding.embeddings, layer.token_embedding)
        x = graph.node("Gather", table, "token_ids")
        if layer.project_first:
            x = graph.dense(layer.projection, x)
        segments = graph.weight(layer.segment_table)
        x = graph.node("Add", x, graph.node("Gather", segments, "segment_ids"))
        time = graph.node("Shape", "token_ids", start=1)
        positions = graph.weight(layer.position_table)
        x = graph.node("Add", x, graph.node("Slice", positions, [0], time, [0]))
        x = graph.layer_norm(layer.layer_norm, x)
        return x if layer.project_first else graph.dense(layer.projection, x)

    def _block(self, block, x, first_only=False):
        x = self._half(block.attention, x, self._attention, first_only)
        return self._half(block.feed_forward, x, self._feed_forward)

    def _half(self, half, x, compute, first_only=False):
        """Add half a block with its residual connection and LayerNorm."""
        graph = self.graph
        inner = graph.layer_norm(half.layer_norm, x) if half.normalize_first else x
        inner = compute(half, inner, first_only)
        x = graph.node("Add", self._first(x) if first_only else x, inner)
        return x if half.normalize_first else graph.layer_norm(half.layer_norm, x)

    def _attention(self, half, x, first_only):
        graph = self.graph
        width = half.num_heads * half.head_dim
        x = graph.dense(half.query_key_value, x)
        query, key, value = graph.node("Split", x, [width] * 3, axis=-1, outputs=3)
        if first_only:
            query = self._first(query)

        def split_heads(x, *order):
            x = graph.node("Reshape", x, [0, 0, half.num_heads, half.head_dim])
            return graph.node("Transpose", x, perm=order)

        scores = graph.node(
            "MatMul", split_heads(query, 0, 2, 1, 3), split_heads(key, 0, 2, 3, 1)
        )
        scores = graph.node("Mul", scores, half.head_dim**-0.5)
        scores = graph.node("Add", scores, self.key_bias)
        probabilities = graph.node("Softmax", scores, axis=-1)
        x = graph.node("MatMul", probabilities, split_heads(value, 0, 2, 1, 3))
        x = graph.node("Transpose", x, perm=[0, 2, 1, 3])
        x = graph.node("Reshape", x, [0, 0, width])
        return graph.dense(half.output_dense, x)

    def _feed_forward(self, half, x, first_only):
        x = self.graph.dense(half.intermediate_dense, x)
        return self.graph.dense(half.output_dense, x)

    def _first(self, x):
        """Return the first position [batch, 1, ...]."""
        return self.graph.node("Slice", x, [0], [1], [1])


def _head(task, network):
    """Add the pooling and the head of a task, and return the name of the output."""
    graph = network.graph
    mode = getattr(task, "pooling_mode", "cls")
    if not task.heads:
        vectors = _POOLING[mode](network)
        if not task.normalize:
            return vectors
        length = graph.node("ReduceL2", vectors, axes=[-1], keepdims=1)
        return graph.node("Div", vectors, graph.node("Max", length, 1e-7))
    head = HEADS[task.heads[0]]
    if head.reads == "sequence":
        x = network.states()[-1]
    else:
        x = _POOLING[mode](network)
        if mode == "cls":
            x = graph.dense(network.backbone.pooled_dense, x)
    return graph.dense(getattr(task, head.attribute), x)


def _mean(network, states):
    graph = network.graph
    masked = graph.node("Mul", states, network.mask)
    total = graph.node("ReduceSum", masked, [1], keepdims=0)
    count = graph.node("ReduceSum", network.mask, [1], keepdims=0)
    return graph.node("Div", total, graph.node("Max", count, 1.0))


def _max(network):
    graph = network.graph
    is_token = graph.node("Cast", network.mask, to=9)
    states = graph.node("Where", is_token, network.states()[-1], float("-inf"))
    return graph.node("ReduceMax", states, axes=[1], keepdims=0)


def _first_last_mean(network):
    graph, states = network.graph, network.states()
    both = graph.node("Add", _mean(network, states[1]), _mean(network, states[-1]))
    return graph.node("Mul", both, 0.5)


# As `albert_tf.models.pooling.POOLING_MODES`.
_POOLING = {
    "cls": _Network.first_state,
    "mean": lambda network: _mean(network, network.states()[-1]),
    "max": _max,
    "first_last_mean": _first_last_mean,
}
