"""Write LiteRT files, with one signature per length."""

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Sequence

import keras
import tensorflow as tf
from keras import ops

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.export.description import check_backend, describe
from albert_tf.files import check_replaced, complete_file
from albert_tf.layers import FactorizedEmbedding
from albert_tf.layers.arguments import suggest_arguments
from albert_tf.layers.private_keras import inner_layers
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import SETTINGS
from albert_tf_lite.litert_model import shapes_of, signature

# Tokens of the signatures: a text of 16 or more is padded by less than half its length.
LENGTHS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@suggest_arguments()
def litert(
    task: AlbertTask,
    path: str | os.PathLike,
    *,
    precision: str = "float32",
    lengths: Sequence[int] = LENGTHS,
    batch_tokens: int = 256,
) -> None:
    """Write a LiteRT file, for phones and small servers.

    The file has a signature `tokens_N` for each length N, which takes `token_ids`,
    `segment_ids` and `padding_mask`, int32 [1, N], and `tokens_N_texts_B` for B texts,
    int32 [B, N]. All signatures share the weights. A zip archive at the end holds the
    settings and the vocabulary, so that `albert_tf_lite.LiteRTModel` takes strings,
    without TensorFlow.

    Args:
        task: a text or multi-label classifier, regressor, token classifier, embedder or
            sentence-order model with a preprocessor.
        path: path of the file, such as `"model.tflite"`. Replaces another file of this
            suffix.
        precision: `"float32"`; `"float16"` for half the size; `"int8"` for a quarter of
            the size and the highest speed (weights in 8 bits, activations quantized
            when they are computed).
        lengths: ints. Tokens of each signature, at most the `sequence_length` of the
            preprocessor. A text runs in the shortest signature that holds it, and is
            truncated to the longest. With fewer, the file is smaller and written
            sooner.
        batch_tokens: int. Tokens of the signatures for several texts, which use several
            cores better: each of them has `batch_tokens // N` texts. With 0, the file
            has none, and is smaller by about a tenth.

    Raises:
        FileExistsError: if `path` is a file of another kind.
        AlbertError: if the class of the task or `precision` is not supported, a length
            is below 5, `batch_tokens` is negative, or the model has no preprocessor or
            is quantized, or TensorFlow has no converter.

    Example:
    ```python
    albert_tf.export.litert(classifier, "model.tflite", precision="int8")
    albert_tf.export.LiteRTModel("model.tflite").predict(["很好"])
    ```
    """
    check_backend()
    check_replaced(path, ".tflite")
    _check_converter()
    settings = describe(task, precision, ("float32", "float16", "int8"))
    if settings["task"] in ("question-answering", "multiple-choice"):
        raise AlbertError(
            f"LiteRT files are not written for {settings['task']}. Use "
            "albert_tf.export.onnx or saved_model."
        )
    if not lengths or min(lengths) < 5:
        raise AlbertError(
            f"`lengths` must be one or more numbers from 5. Received: {list(lengths)}"
        )
    if type(batch_tokens) is not int or batch_tokens < 0:
        raise AlbertError(
            f"`batch_tokens` must be a number from 0. Received: {batch_tokens!r}"
        )
    lengths = sorted({min(int(n), settings["sequence_length"]) for n in lengths})
    settings.update(
        lengths=lengths, batch_tokens=batch_tokens, sequence_length=lengths[-1]
    )
    rebuilt = _rebuild(task, lengths[-1])
    shapes = shapes_of(lengths, batch_tokens)
    network = _convert(rebuilt, shapes, precision, settings["output"])
    settings["sha256"] = hashlib.sha256(network).hexdigest()
    # In memory, because `ZipFile` starts a new file if it cannot open the former one.
    content = io.BytesIO(network)
    # As TensorFlow's own tools do. Interpreters do not read that far.
    with zipfile.ZipFile(content, "a") as archive:
        text = json.dumps(settings, ensure_ascii=False)
        # Without the time, so that the files of equal models are equal.
        archive.writestr(zipfile.ZipInfo(SETTINGS), text, zipfile.ZIP_DEFLATED)
    with complete_file(path) as temporary:
        temporary.write_bytes(content.getvalue())


def _check_converter():
    """Raise if this TensorFlow no longer has the converter, which is to leave it."""
    if getattr(tf, "lite", None) is None:
        raise AlbertError(
            f"TensorFlow {tf.__version__} has no tf.lite, whose converter writes "
            "LiteRT files. Export in an environment with TensorFlow 2.21, or use "
            "albert_tf.export.onnx."
        )


def _convert(task, shapes, precision, output):
    """Return the network as bytes, with signatures for inputs of some shapes."""
    module = tf.Module()
    module.weights = [variable.value for variable in task.weights]
    names = list(task.input)

    def call(*values):
        inputs = dict(zip(names, values, strict=True))
        return {output: task(inputs, training=False)}

    functions = {}
    for shape in shapes:
        specs = [tf.TensorSpec(shape, tf.int32, name=name) for name in names]
        functions[signature(*shape)] = tf.function(call, specs, autograph=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # From the variables. Concrete functions would each hold a copy of their values.
        tf.saved_model.save(module, folder, signatures=functions)
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=list(functions)
        )
        if precision != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if precision == "float16":
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()


class _LooksUpPositions(FactorizedEmbedding):
    """Embedding that looks up positions.

    The converter would write a slice of their table, a constant, for each length.
    """

    def _positions(self, token_ids):
        length = token_ids.shape[1]
        # The second operand is never smaller, but prevents another constant.
        rows = ops.minimum(ops.arange(length, dtype="int32"), token_ids + length)
        return ops.take(self.position_table, rows, axis=0)


class _Backbone(AlbertBackbone):
    embedding_cls = _LooksUpPositions


def _rebuild(task, positions):
    """Copy a task, with or without LoRA, to one of `positions` in float32."""
    config = task.backbone.get_config()
    config.update(dtype="float32", max_sequence_length=positions, lora=None)
    backbone = _Backbone.from_config(config)
    config = task.get_config()
    config.pop("dtype", None)
    config.update(backbone=backbone, preprocessor=None, compile=False)
    rebuilt = type(task)(**config)
    weights = [x for x in task.weights if not x.name.startswith("lora_")]
    for weight, other in zip(rebuilt.weights, weights, strict=True):
        # The position table of the copy may have fewer rows.
        weight.assign(ops.cast(other, "float32")[: weight.shape[0]])
    for layer, other in zip(_dense_layers(rebuilt), _dense_layers(task), strict=True):
        # With LoRA the kernel is a sum.
        if other.lora_enabled:
            layer.kernel.assign(other.kernel)
    return rebuilt


def _dense_layers(model: keras.Model) -> list[keras.layers.Dense]:
    return [x for x in inner_layers(model) if isinstance(x, keras.layers.Dense)]
