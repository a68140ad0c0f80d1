"""Nodes and weights of an ONNX graph that is being written."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from albert_tf.layers.common import gelu_approximate
from albert_tf_lite.errors import AlbertError


class Nodes:
    """The nodes and weights of a graph; each weight and constant is in it once.

    Args:
        onnx: the module.

    Attributes:
        nodes: list of `onnx.NodeProto`.
        initializers: list of `onnx.TensorProto`.
    """

    def __init__(self, onnx: Any):
        self._onnx = onnx
        self.nodes, self.initializers = [], []
        self._weights, self._constants = {}, {}

    def node(
        self,
        kind: str,
        *inputs: str,
        output: str | None = None,
        outputs: int = 1,
        **attributes: Any,
    ) -> Any:
        """Add a node.

        Args:
            kind: the operator.
            *inputs: names of tensors.
            output: optional name of what it gives.
            outputs: int, how many tensors it gives.
            **attributes: of the operator.

        Returns:
            The name of its output, or the list of them.
        """
        name = f"{kind}_{len(self.nodes)}"
        names = (
            [output or name]
            if outputs == 1
            else [f"{name}_{i}" for i in range(outputs)]
        )
        self.nodes.append(
            self._onnx.helper.make_node(kind, inputs, names, name=name, **attributes)
        )
        return names[0] if outputs == 1 else names

    def weight(self, variable: keras.Variable, owner: Any = None) -> str:
        """The name of a variable; of a tensor computed by a layer, say its `owner`."""
        key = id(owner or variable)
        if key not in self._weights:
            values = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
            name = getattr(owner or variable, "path", "weight")
            self._weights[key] = self._add(f"{name}_{len(self.initializers)}", values)
        return self._weights[key]

    def constant(self, value: Any) -> str:
        """The name of a constant; Python's ints are int64."""
        value = np.asarray(value)
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self._constants[key] = self._add(name, value)
        return self._constants[key]

    def _add(self, name, values):
        self.initializers.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def dense(self, layer: keras.layers.Dense, x: str) -> str:
        """A dense layer with its activation."""
        # With LoRA the kernel is computed anew each time it is asked for.
        x = self.node("MatMul", x, self.weight(layer.kernel, owner=layer))
        if layer.use_bias:
            x = self.node("Add", x, self.weight(layer.bias))
        return self.activation(layer.activation, x)

    def activation(self, function: Any, x: str) -> str:
        """An activation of Keras.

        Raises:
            AlbertError: if ONNX has none such.
        """
        if function not in _ACTIVATIONS:
            known = ", ".join(f.__name__ for f in _ACTIVATIONS)
            raise AlbertError(
                f"The activation {function} cannot be written to ONNX. Known are: "
                f"{known}."
            )
        return _ACTIVATIONS[function](self, x)


def _gelu(nodes, x):
    half, one = (nodes.constant(np.float32(value)) for value in (0.5, 1))
    root = nodes.constant(np.float32(2**-0.5))
    error = nodes.node("Erf", nodes.node("Mul", x, root))
    x = nodes.node("Mul", x, nodes.node("Add", error, one))
    return nodes.node("Mul", x, half)


def _gelu_approximate(nodes, x):
    # In the order of operations that ONNX Runtime knows and runs as one.
    half, one, three, cubic, root = (
        nodes.constant(np.float32(value))
        for value in (0.5, 1, 3, 0.044715, (2 / np.pi) ** 0.5)
    )
    cube = nodes.node("Mul", nodes.node("Pow", x, three), cubic)
    inner = nodes.node("Mul", nodes.node("Add", x, cube), root)
    outer = nodes.node("Add", nodes.node("Tanh", inner), one)
    return nodes.node("Mul", nodes.node("Mul", x, half), outer)


_ACTIVATIONS = {
    gelu_approximate: _gelu_approximate,
    keras.activations.gelu: _gelu,
    keras.activations.relu: lambda nodes, x: nodes.node("Relu", x),
    keras.activations.tanh: lambda nodes, x: nodes.node("Tanh", x),
    keras.activations.sigmoid: lambda nodes, x: nodes.node("Sigmoid", x),
    keras.activations.silu: lambda nodes, x: nodes.node(
        "Mul", x, nodes.node("Sigmoid", x)
    ),
    keras.activations.softmax: lambda nodes, x: nodes.node("Softmax", x, axis=-1),
    keras.activations.linear: lambda nodes, x: x,
}
