from __future__ import annotations

import os
import tempfile
from pathlib import Path

from albert_tf.export.contents import check_precision, contents_of
from albert_tf.export.onnx_graph import build_model
from albert_tf.files import complete_file
from albert_tf.models.task import AlbertTask
from albert_tf_lite.extra import import_extra
from albert_tf_lite.onnx_model import strings_of

PRECISIONS = ("float32", "int8")


def onnx(
    task: AlbertTask, path: str | os.PathLike, *, precision: str = "float32"
) -> None:
    """Write an ONNX file, for ONNX Runtime, OpenVINO and Triton.

    It takes `token_ids`, `segment_ids` and `padding_mask`, int32 [batch, time], of any
    batch and of any length up to the model's positions. Weights that layers share are
    in it once. The vocabulary and all that an answer needs are in its metadata, so that
    `albert_tf_lite.OnnxModel` takes strings. What runs it needs no TensorFlow.

    Args:
        task: as for `albert_tf.export.litert`.
        path: string, the file, such as `"model.onnx"`.
        precision: `"float32"`; or `"int8"` for a quarter of the size, and faster:
            weights in 8 bits, each batch of activations quantized as it comes.

    Raises:
        ImportError: if onnx, or for int8 onnxruntime, is not installed.
        TypeError: if the task is none of these.
        AlbertError: if `precision` or the activation is unknown, or the model has no
            preprocessor or was quantized.

    Example:
    ```python
    albert_tf.export.onnx(classifier, "model.onnx", precision="int8")
    albert_tf.export.OnnxModel("model.onnx").predict(["很好"])
    ```
    """
    check_precision(precision, PRECISIONS)
    library = import_extra("onnx")
    contents = contents_of(task)
    model = build_model(task, contents.settings["output"])
    if precision == "int8":
        model = _quantize(model)
    library.helper.set_model_props(model, strings_of(contents.files()))
    with complete_file(path) as temporary:
        temporary.write_bytes(model.SerializeToString())


def _quantize(model):
    """The model with weights in 8 bits, and activations quantized as they come."""
    quantization = import_extra("onnxruntime.quantization")
    onnx = import_extra("onnx")
    # There is nothing to simplify or fuse beforehand, of which it warns otherwise.
    onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "int8.onnx")
        quantization.quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul", "Gather"],
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            # 7 bits of a weight: with 8, sums overflow on processors without VNNI.
            reduce_range=True,
        )
        return onnx.load(path)
