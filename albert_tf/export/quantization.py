"""Weights of an ONNX graph in 8 bits, with activations scaled per token."""

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

# Products of two unsigned 8-bit activations and such weights just fit into 16 bits,
# in which processors with AVX2 and without VNNI add them.
_LARGEST_WEIGHT = 64
# Activations of a row, divided by the largest, as unsigned integers.
_STEP, _ZERO = np.float32(1 / 127), np.uint8(128)


def quantize(
    model: "onnx.ModelProto", library: ModuleType, table_bits: int = 16
) -> "onnx.ModelProto":
    """Return an `onnx.ModelProto` with the weights of products in 8 bits.

    Tables have 16 bits, or with `table_bits=8` a scale per row: a smaller file, and
    more labels that differ from those of float32.

    The activations of each token are scaled by the largest of them. A scale for all
    tokens of a batch, as in `onnxruntime.quantization.quantize_dynamic`, would let the
    score of a text depend on the other texts. The operations are those of ONNX itself,
    `QuantizeLinear` and `DequantizeLinear`, which runtimes fuse with a product into one
    of integers.
    """
    return _Quantizer(model, library, table_bits).quantized()


class _Quantizer:
    def __init__(self, model, library, table_bits):
        self._onnx, self._model, self._table_bits = library, model, table_bits
        self._weights = {x.name: x for x in model.graph.initializer}
        self._nodes: list = []
        self._initializers: dict[str, Any] = {}

    def quantized(self):
        graph = self._model.graph
        for node in graph.node:
            self._add(node)
        kept = {name for node in self._nodes for name in node.input}
        initializers = [x for x in graph.initializer if x.name in kept]
        initializers += self._initializers.values()
        result = self._onnx.ModelProto()
        result.CopyFrom(self._model)
        result.graph.ClearField("node")
        result.graph.node.extend(self._nodes)
        result.graph.ClearField("initializer")
        result.graph.initializer.extend(initializers)
        return result

    def _add(self, node):
        """Add a node, or what replaces it if it reads a weight."""
        # A product reads its weight second, a table is read first.
        place = {"MatMul": 1, "Gather": 0}.get(node.op_type)
        weight = self._weights.get(node.input[place]) if place is not None else None
        if weight is None or weight.data_type != weight.FLOAT or len(weight.dims) != 2:
            self._nodes.append(node)
        elif node.op_type == "MatMul":
            self._add_product(node, weight)
        else:
            self._add_table(node, weight)

    def _add_product(self, node, weight):
        x, output = node.input[0], node.output[0]
        largest = self._node("ReduceMax", self._node("Abs", x), axes=[-1], keepdims=1)
        # A row of zeros stays one.
        floor = self._constant("smallest_scale", np.float32(1e-30))
        largest = self._node("Max", largest, floor)
        step, zero = self._constant("step", _STEP), self._constant("zero", _ZERO)
        row = self._node("QuantizeLinear", self._node("Div", x, largest), step, zero)
        row = self._node("DequantizeLinear", row, step, zero)
        values, scales = self._quantized_weight(weight, 0, _LARGEST_WEIGHT)
        zeros = np.zeros(weight.dims[1], "int8")
        zeros = self._constant(f"{weight.name}_zeros", zeros)
        kernel = self._node("DequantizeLinear", values, scales, zeros, axis=1)
        product = self._node("MatMul", row, kernel)
        self._node("Mul", product, largest, output=output)

    def _add_table(self, node, weight):
        ids, output = node.input[1], node.output[0]
        if self._table_bits == 16:
            values = self._onnx.numpy_helper.to_array(weight).astype("float16")
            values = self._constant(f"{weight.name}_float16", values)
            self._node("Cast", self._node("Gather", values, ids), to=1, output=output)
            return
        values, scales = self._quantized_weight(weight, 1, 127)
        rows = self._node("Cast", self._node("Gather", values, ids), to=1)
        last = self._constant("last_axis", np.array([-1]))
        scales = self._node("Unsqueeze", self._node("Gather", scales, ids), last)
        self._node("Mul", rows, scales, output=output)

    def _quantized_weight(self, weight, axis, most):
        """Return the names of a weight in 8 bits and of its scales.

        A scale is shared over `axis`.
        """
        integers_name = f"{weight.name}_int8_{axis}"
        scales_name = f"{weight.name}_scales_{axis}"
        if integers_name not in self._initializers:
            values = self._onnx.numpy_helper.to_array(weight)
            largest = np.abs(values).max(axis=axis, keepdims=True)
            scales = np.maximum(largest / most, 1e-30).astype("float32")
            self._constant(integers_name, np.round(values / scales).astype("int8"))
            self._constant(scales_name, scales.ravel())
        return integers_name, scales_name

    def _constant(self, name, value):
        if name not in self._initializers:
            from_array = self._onnx.numpy_helper.from_array
            self._initializers[name] = from_array(np.asarray(value), name)
        return name

    def _node(self, kind, *inputs, output=None, **attributes):
        name = output or f"{kind}_int8_{len(self._nodes)}"
        make = self._onnx.helper.make_node
        self._nodes.append(make(kind, inputs, [name], name=name, **attributes))
        return name
