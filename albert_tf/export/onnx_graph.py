"""Nodes and weights of an ONNX graph under construction."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from albert_tf.layers.common import LAYER_NORM_EPSILON, gelu_approximate
from albert_tf_lite.errors import AlbertError

# The oldest with LayerNormalization, for Triton and OpenVINO.
OPSET = 17
IR_VERSION = 8


class Graph:
    """Graph that holds each weight and constant once; methods return tensor names."""

    def __init__(self, onnx: Any):
        self._onnx = onnx
        self._nodes: list = []
        self._initializers: list = []
        self._weights: dict[int, str] = {}
        self._constants: dict[tuple, str] = {}

    def model(self, inputs: list[str], output: str, shape: Sequence) -> Any:
        """Return the `onnx.ModelProto`, with an output of a shape of Keras."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        value_info = helper.make_tensor_value_info
        axes = ["batch", "time"]
        shape = [x or axis for x, axis in zip(shape, [*axes, None], strict=False)]
        graph = helper.make_graph(
            self._nodes,
            "albert",
            [value_info(name, types.INT32, axes) for name in inputs],
            [value_info(output, types.FLOAT, shape)],
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
        tensors = [x if isinstance(x, str) else self._constant(x) for x in inputs]
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
        key = id(owner or variable)
        if key not in self._weights:
            values = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
            name = (owner or variable).path
            self._weights[key] = self._add(f"{name}_{len(self._initializers)}", values)
        return self._weights[key]

    def _constant(self, value):
        value = np.asarray(value, "float32" if isinstance(value, float) else "int64")
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self._constants[key] = self._add(name, value)
        return self._constants[key]

    def _add(self, name, values):
        values = self._onnx.numpy_helper.from_array(values, name)
        self._initializers.append(values)
        return name

    def layer_norm(self, layer: keras.layers.LayerNormalization, x: str) -> str:
        weights = (self.weight(layer.gamma), self.weight(layer.beta))
        return self.node(
            "LayerNormalization", x, *weights, axis=-1, epsilon=LAYER_NORM_EPSILON
        )

    def dense(self, layer: keras.layers.Dense, x: str) -> str:
        """Add a dense layer with its activation."""
        # With LoRA each access computes another tensor.
        x = self.node("MatMul", x, self.weight(layer.kernel, owner=layer))
        if layer.use_bias:
            x = self.node("Add", x, self.weight(layer.bias))
        if layer.activation not in _ACTIVATIONS:
            known = ", ".join(f.__name__ for f in _ACTIVATIONS)
            raise AlbertError(
                f"The activation {layer.activation} cannot be exported to ONNX. "
                f"Supported: {known}."
            )
        return _ACTIVATIONS[layer.activation](self, x)


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
    keras.activations.softmax: lambda graph, x: graph.node("Softmax", x, axis=-1),
    keras.activations.linear: lambda graph, x: x,
}
