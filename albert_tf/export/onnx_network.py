"""The ONNX graph of a backbone, and weights in the file of a checkpoint.

The graph holds shared weights once. A converter of traced graphs would write them for
each layer.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.layers.activations import gelu_approximate
from albert_tf.layers.attention_block import MASKED_SCORE
from albert_tf.layers.layer_normalization import LAYER_NORM_EPSILON
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.packing import INPUTS
from albert_tf_lite.pointers import read_bytes

# The oldest with LayerNormalization, for Triton and OpenVINO.
OPSET = 17
IR_VERSION = 8
# Bytes. Smaller weights are in the file of the graph even if a checkpoint has them.
_SMALL = 4096


class StoredWeights:
    """Weights in the data file of a TensorFlow checkpoint, which has them uncompressed.

    Args:
        library: the module `onnx`.
        path: path of the file.
        graph: path of the ONNX file that will read it, in the same directory.

    Raises:
        AlbertError: if the files are in different directories.
    """

    def __init__(self, library: Any, path: str | os.PathLike, graph: str | os.PathLike):
        self._onnx, path = library, Path(path)
        if path.parent.resolve() != Path(graph).parent.resolve():
            raise AlbertError(
                f"ONNX Runtime reads weights beside the graph only. Write {graph} into "
                f"{path.parent}."
            )
        self._name, self._data = path.name, read_bytes(path)
        # In the settings of the graph, which is not opened with other weights.
        digest = hashlib.sha256(self._data).hexdigest()
        self.description = {"file": self._name, "sha256": digest}

    def tensors(self, values: np.ndarray, name: str) -> tuple[list, bool]:
        """Return the `TensorProto` of values in the file, and whether transposed.

        Several are to be joined along the last axis: a checkpoint has query, key and
        value apart. The original form has the outputs of a classifier first.

        Raises:
            AlbertError: if the values are not in the file.
        """
        for array in (values, values.T):
            for count in (1, 3):
                if array.shape[-1] % count:
                    continue
                pieces = np.split(array, count, axis=-1)
                offsets = [self._data.find(piece.tobytes()) for piece in pieces]
                if min(offsets) >= 0:
                    tensors = [
                        self._tensor(f"{name}_{offset}", piece, offset)
                        for piece, offset in zip(pieces, offsets, strict=True)
                    ]
                    return tensors, array is not values
        raise AlbertError(
            f"{self._name} lacks the weights {name}. Pass the data file of a "
            "checkpoint in the original form with this model."
        )

    def _tensor(self, name, values, offset):
        proto = self._onnx.TensorProto
        tensor = proto(name=name, dims=values.shape, data_type=proto.FLOAT)
        tensor.data_location = proto.EXTERNAL
        fields = {"location": self._name, "offset": offset, "length": values.nbytes}
        for key, value in fields.items():
            tensor.external_data.add(key=key, value=str(value))
        return tensor


class Network:
    """ONNX graph of a backbone, with each weight and constant once.

    Methods return names of tensors.

    Args:
        library: the module `onnx`.
        backbone: an `AlbertBackbone`.
        inputs: names of the ids, the segments and the mask.
        dtype: string, the type of the inputs, such as `"INT32"`.
        stored: optional `StoredWeights`, for a graph without the weights.
    """

    def __init__(
        self,
        library: Any,
        backbone: AlbertBackbone,
        inputs: Sequence[str] = INPUTS,
        dtype: str = "INT32",
        stored: StoredWeights | None = None,
    ):
        self._onnx, self._stored = library, stored
        self._nodes: list = []
        self._initializers: list = []
        self._names: dict[Any, str] = {}
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
            self._initializers,
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

    def weight(
        self, variable: keras.Variable, owner: keras.layers.Layer | None = None
    ) -> str:
        """Add a variable, or a tensor that its `owner` computes."""
        source = variable if owner is None else owner
        if id(source) in self._names:
            return self._names[id(source)]
        values = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
        return self._add(id(source), source.path, values)

    def constant(self, value: int | float | list[int] | np.ndarray) -> str:
        """Add a number or an array."""
        if not isinstance(value, np.ndarray):
            dtype = "float32" if isinstance(value, float) else "int64"
            value = np.asarray(value, dtype)
        key = (value.dtype.str, value.shape, value.tobytes())
        return self._add(key, "constant", value)

    def _add(self, key, name, values):
        if key not in self._names:
            self._names[key] = self._tensor(f"{name}_{len(self._names)}", values)
        return self._names[key]

    def _tensor(self, name, values):
        is_transposed = False
        if self._stored is None or values.nbytes < _SMALL:
            tensors = [self._onnx.numpy_helper.from_array(values, name)]
        else:
            tensors, is_transposed = self._stored.tensors(values, name)
        self._initializers += tensors
        if is_transposed:
            return self.node("Transpose", tensors[0].name, perm=[1, 0])
        if len(tensors) == 1:
            return tensors[0].name
        # ONNX Runtime joins them once, when it opens the file.
        return self.node("Concat", *(x.name for x in tensors), axis=-1)

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
        tokens = self.node("Gather", table, self.token_ids)
        if layer.project_first:
            tokens = self.dense(layer.projection, tokens)
        segment_table = self.weight(layer.segment_table)
        segments = self.node("Gather", segment_table, self.segment_ids)
        total = self.node("Add", tokens, segments)
        time = self.node("Shape", self.token_ids, start=1)
        position_table = self.weight(layer.position_table)
        positions = self.node("Slice", position_table, [0], time, [0])
        total = self.node("Add", total, positions)
        normalized = self.layer_norm(layer.layer_norm, total)
        if layer.project_first:
            return normalized
        return self.dense(layer.projection, normalized)

    def _block(self, block, x, first_only=False):
        x = self._half(block.attention, x, self._attention, first_only)
        return self._half(block.feed_forward, x, self._feed_forward)

    def _half(self, half, x, compute, first_only=False):
        """Add half a block with its residual connection and LayerNorm."""
        inner = x
        if half.normalize_first:
            inner = self.layer_norm(half.layer_norm, x)
        inner = compute(half, inner, first_only)
        if first_only:
            x = self._first(x)
        total = self.node("Add", x, inner)
        if half.normalize_first:
            return total
        return self.layer_norm(half.layer_norm, total)

    def _attention(self, half, x, first_only):
        width = half.num_heads * half.head_dim
        joined = self.dense(half.query_key_value, x)
        query, key, value = self.node("Split", joined, [width] * 3, axis=-1, outputs=3)
        if first_only:
            query = self._first(query)

        def split_heads(tensor: str, order: list[int]) -> str:
            shape = [0, 0, half.num_heads, half.head_dim]
            return self.node(
                "Transpose", self.node("Reshape", tensor, shape), perm=order
            )

        # [batch, heads, time, head_dim], the key with the last two axes exchanged.
        query = split_heads(query, [0, 2, 1, 3])
        key = split_heads(key, [0, 2, 3, 1])
        value = split_heads(value, [0, 2, 1, 3])
        scores = self.node("MatMul", query, key)
        scores = self.node("Mul", scores, half.head_dim**-0.5)
        scores = self.node("Add", scores, self.key_bias)
        probabilities = self.node("Softmax", scores, axis=-1)
        attended = self.node("MatMul", probabilities, value)
        attended = self.node("Transpose", attended, perm=[0, 2, 1, 3])
        attended = self.node("Reshape", attended, [0, 0, width])
        return self.dense(half.output_dense, attended)

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
