"""Write ONNX files from the layers of a task.

The graph holds shared weights once. A converter of traced graphs would write them for
each layer.
"""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.checkpoints.heads import HEADS
from albert_tf.export.description import describe, head_of
from albert_tf.extras import import_extra
from albert_tf.files import complete_file
from albert_tf.layers.attention_block import MASKED_SCORE
from albert_tf.layers.common import LAYER_NORM_EPSILON, gelu_approximate
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import SETTINGS
from albert_tf_lite.opening import preset_digest
from albert_tf_lite.packing import INPUTS

# The oldest with LayerNormalization, for Triton and OpenVINO.
OPSET = 17
IR_VERSION = 8


def onnx(
    task: AlbertTask,
    path: str | os.PathLike,
    *,
    precision: str = "float32",
    preset: str | os.PathLike | None = None,
) -> None:
    """Write an ONNX file, for ONNX Runtime, OpenVINO and Triton.

    The file takes `token_ids`, `segment_ids` and `padding_mask`, int32 [batch, time],
    of any batch and of any length up to the model's positions. It holds shared weights
    once. The metadata hold the settings and the vocabulary, so that
    `albert_tf_lite.OnnxModel` takes strings, without TensorFlow.

    Args:
        task: as in `albert_tf.export.litert`, or a model for question answering or
            multiple choice.
        path: path of the file, such as `"model.onnx"`.
        precision: `"float32"`, or `"int8"` for a quarter of the size and more speed
            (weights in 8 bits, activations quantized when they are computed).
        preset: optional path of the preset with this model. In the file
            `model.onnx` in it, `albert_tf_lite.pipeline` then answers for the preset,
            as long as its weights are those of the file.

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
    if preset is not None:
        settings["preset"] = preset_digest(preset)
    network = Network(library, task.backbone)
    output = settings["output"]
    network.node("Identity", _head(task, network), output=output)
    model = network.model({output: output_shape(task, settings["units"])})
    if precision == "int8":
        model = quantize(model, library)
    text = json.dumps(settings, ensure_ascii=False)
    library.helper.set_model_props(model, {SETTINGS: text})
    with complete_file(path) as temporary:
        temporary.write_bytes(model.SerializeToString())


def quantize(model: Any, library: Any) -> Any:
    """Return the model with weights in 8 bits and dynamic quantization."""
    quantization = import_extra("onnxruntime.quantization")
    # Avoids a warning about preprocessing, which this graph does not need.
    library.helper.set_model_props(
        model, {"onnx.quant.pre_process": "onnxruntime.quant"}
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
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


class Network:
    """ONNX graph of a backbone, with each weight and constant once.

    Methods return names of tensors.

    Args:
        library: the module `onnx`.
        backbone: an `AlbertBackbone`.
        inputs: names of the ids, the segments and the mask.
        dtype: string, the type of the inputs, such as `"INT32"`.
    """

    def __init__(
        self,
        library: Any,
        backbone: AlbertBackbone,
        inputs: Sequence[str] = INPUTS,
        dtype: str = "INT32",
    ):
        self._onnx = library
        self._nodes: list = []
        self._initializers: dict[Any, Any] = {}
        self._inputs, self._dtype = inputs, dtype
        self.backbone = backbone
        # A graph may change the ids before the backbone reads them.
        self.token_ids, self.segment_ids, padding_mask = inputs
        mask = self.node("Cast", padding_mask, to=1)
        # [batch, time, 1], 1 for a token.
        self.mask = self.node("Unsqueeze", mask, [2])
        blocked = self.node("Unsqueeze", self.node("Sub", 1.0, mask), [1, 2])
        # [batch, 1, 1, time], added to the score of each key.
        self.key_bias = self.node("Mul", blocked, MASKED_SCORE)

    def model(self, outputs: dict[str, Sequence]) -> Any:
        """Return the `onnx.ModelProto`, with the outputs of these shapes."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        value_info, dtype = helper.make_tensor_value_info, getattr(types, self._dtype)
        axes = ["batch", "time"]
        graph = helper.make_graph(
            self._nodes,
            "albert",
            [value_info(name, dtype, axes) for name in self._inputs],
            [value_info(name, types.FLOAT, x) for name, x in outputs.items()],
            list(self._initializers.values()),
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="albert_tf",
        )

    def node(
        self,
        kind: str,
        *inputs: Any,
        output: str | None = None,
        outputs: int = 1,
        **attributes: Any,
    ) -> Any:
        """Add a node; return the name of its output, or the names of several.

        Inputs are names of tensors, or constants.
        """
        tensors = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        name = f"{kind}_{len(self._nodes)}"
        names = [output or name]
        if outputs > 1:
            names = [f"{name}_{i}" for i in range(outputs)]
        self._nodes.append(
            self._onnx.helper.make_node(kind, tensors, names, name=name, **attributes)
        )
        return names if outputs > 1 else names[0]

    def weight(self, variable: keras.Variable, owner: Any = None) -> str:
        """Add a variable, or a tensor computed by its `owner`."""
        owner = owner or variable
        if id(owner) in self._initializers:
            return self._initializers[id(owner)].name
        values = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
        return self._add(id(owner), owner.path, values)

    def constant(self, value: Any) -> str:
        """Add a number or an array."""
        if not isinstance(value, np.ndarray):
            dtype = "float32" if isinstance(value, float) else "int64"
            value = np.asarray(value, dtype)
        key = (value.dtype.str, value.shape, value.tobytes())
        return self._add(key, "constant", value)

    def _add(self, key, name, values):
        if key not in self._initializers:
            name = f"{name}_{len(self._initializers)}"
            tensor = self._onnx.numpy_helper.from_array(values, name)
            self._initializers[key] = tensor
        return self._initializers[key].name

    def layer_norm(self, layer: keras.layers.LayerNormalization, x: str) -> str:
        weights = (self.weight(layer.gamma), self.weight(layer.beta))
        return self.node(
            "LayerNormalization", x, *weights, axis=-1, epsilon=LAYER_NORM_EPSILON
        )

    def dense(self, layer: keras.layers.Dense, x: str, activate: bool = True) -> str:
        """Add a dense layer, with its activation if `activate`."""
        # With LoRA each access computes another tensor.
        x = self.node("MatMul", x, self.weight(layer.kernel, owner=layer))
        if layer.use_bias:
            x = self.node("Add", x, self.weight(layer.bias))
        return self.activate(layer.activation, x) if activate else x

    def activate(self, activation, x):
        if activation not in _ACTIVATIONS:
            known = ", ".join(f.__name__ for f in _ACTIVATIONS)
            raise AlbertError(
                f"The activation {activation} cannot be exported to ONNX. "
                f"Supported: {known}."
            )
        return _ACTIVATIONS[activation](self, x)

    def states(self, first_only: bool = False) -> list[str]:
        """Return the outputs of the embedding and of each block.

        With `first_only` the last block computes the first position only.
        """
        states = [self._embedding(self.backbone.embedding)]
        *blocks, last = self.backbone.encoder_blocks
        for block in blocks:
            states.append(self._block(block, states[-1]))
        return [*states, self._block(last, states[-1], first_only)]

    def _embedding(self, layer):
        table = self.weight(layer.token_embedding.embeddings, layer.token_embedding)
        x = self.node("Gather", table, self.token_ids)
        if layer.project_first:
            x = self.dense(layer.projection, x)
        segments = self.weight(layer.segment_table)
        x = self.node("Add", x, self.node("Gather", segments, self.segment_ids))
        time = self.node("Shape", self.token_ids, start=1)
        positions = self.weight(layer.position_table)
        x = self.node("Add", x, self.node("Slice", positions, [0], time, [0]))
        x = self.layer_norm(layer.layer_norm, x)
        return x if layer.project_first else self.dense(layer.projection, x)

    def _block(self, block, x, first_only=False):
        x = self._half(block.attention, x, self._attention, first_only)
        return self._half(block.feed_forward, x, self._feed_forward)

    def _half(self, half, x, compute, first_only=False):
        """Add half a block with its residual connection and LayerNorm."""
        inner = self.layer_norm(half.layer_norm, x) if half.normalize_first else x
        inner = compute(half, inner, first_only)
        x = self.node("Add", self._first(x) if first_only else x, inner)
        return x if half.normalize_first else self.layer_norm(half.layer_norm, x)

    def _attention(self, half, x, first_only):
        width = half.num_heads * half.head_dim
        x = self.dense(half.query_key_value, x)
        query, key, value = self.node("Split", x, [width] * 3, axis=-1, outputs=3)
        if first_only:
            query = self._first(query)

        def split_heads(x, *order):
            x = self.node("Reshape", x, [0, 0, half.num_heads, half.head_dim])
            return self.node("Transpose", x, perm=order)

        scores = self.node(
            "MatMul", split_heads(query, 0, 2, 1, 3), split_heads(key, 0, 2, 3, 1)
        )
        scores = self.node("Mul", scores, half.head_dim**-0.5)
        scores = self.node("Add", scores, self.key_bias)
        probabilities = self.node("Softmax", scores, axis=-1)
        x = self.node("MatMul", probabilities, split_heads(value, 0, 2, 1, 3))
        x = self.node("Transpose", x, perm=[0, 2, 1, 3])
        x = self.node("Reshape", x, [0, 0, width])
        return self.dense(half.output_dense, x)

    def _feed_forward(self, half, x, first_only):
        x = self.activate(half.activation, self.dense(half.intermediate_dense, x))
        return self.dense(half.output_dense, x)

    def _first(self, x):
        """Return the first position [batch, 1, ...]."""
        return self.node("Slice", x, [0], [1], [1])


def _gelu(graph, x):
    error = graph.node("Erf", graph.node("Mul", x, 2**-0.5))
    x = graph.node("Mul", x, graph.node("Add", error, 1.0))
    return graph.node("Mul", x, 0.5)


def _gelu_approximate(graph, x):
    # ONNX Runtime fuses operations in this order.
    cube = graph.node("Mul", graph.node("Pow", x, 3.0), 0.044715)
    inner = graph.node("Mul", graph.node("Add", x, cube), (2 / np.pi) ** 0.5)
    outer = graph.node("Add", graph.node("Tanh", inner), 1.0)
    return graph.node("Mul", graph.node("Mul", x, 0.5), outer)


_ACTIVATIONS = {
    gelu_approximate: _gelu_approximate,
    keras.activations.gelu: _gelu,
    keras.activations.relu: lambda graph, x: graph.node("Relu", x),
    keras.activations.tanh: lambda graph, x: graph.node("Tanh", x),
    keras.activations.sigmoid: lambda graph, x: graph.node("Sigmoid", x),
    keras.activations.silu: lambda graph, x: graph.node(
        "Mul", x, graph.node("Sigmoid", x)
    ),
    keras.activations.softmax: lambda graph, x: graph.node("Softmax", x),
    keras.activations.linear: lambda graph, x: x,
}


def output_shape(task: Any, units: int) -> list:
    """Return the shape of the output."""
    is_per_token = task.heads and HEADS[task.heads[0]].reads == "sequence"
    return ["batch", "time", units] if is_per_token else ["batch", units]


def _head(task, network):
    """Add the pooling and the head of a task, and return the name of the output."""
    if task.heads:
        return network.dense(head_of(task), head_input(task, network))
    mode = task.pooling_mode
    states = network.states(first_only=mode == "cls")
    return embedding(task, network, states)


def head_input(task: Any, network: Network) -> str:
    """Add what the head of a task reads."""
    if HEADS[task.heads[0]].reads == "sequence":
        return network.states()[-1]
    mode = getattr(task, "pooling_mode", "cls")
    x = _pool(network, mode, network.states(first_only=mode == "cls"))
    return network.dense(network.backbone.pooled_dense, x) if mode == "cls" else x


def embedding(task: Any, network: Network, states: Sequence[str]) -> str:
    """Add the vectors of an embedder, from the outputs of the layers."""
    vectors = _pool(network, task.pooling_mode, states)
    if not task.normalize:
        return vectors
    length = network.node("ReduceL2", vectors, axes=[-1], keepdims=1)
    return network.node("Div", vectors, network.node("Max", length, 1e-7))


def _pool(network, mode, states):
    """Add a mode of `albert_tf.models.pooling.POOLING_MODES`."""
    node, x = network.node, states[-1]
    if mode == "cls":
        return node("Gather", x, 0, axis=1)
    if mode == "max":
        x = node("Where", node("Cast", network.mask, to=9), x, float("-inf"))
        return node("ReduceMax", x, axes=[1], keepdims=0)
    if mode == "first_last_mean":
        x = node("Mul", node("Add", states[1], x), 0.5)
    total = node("ReduceSum", node("Mul", x, network.mask), [1], keepdims=0)
    count = node("ReduceSum", network.mask, [1], keepdims=0)
    return node("Div", total, node("Max", count, 1.0))
