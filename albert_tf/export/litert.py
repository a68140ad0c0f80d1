from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Sequence

import keras
import tensorflow as tf

from albert_tf.export.contents import check_precision, contents_of
from albert_tf.export.litert_task import rebuild
from albert_tf.files import complete_file
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError

PRECISIONS = ("float32", "float16", "int8")


def litert(
    task: AlbertTask,
    path: str | os.PathLike,
    *,
    precision: str = "float32",
    lengths: Sequence[int] = (32, 64, 128, 256),
) -> None:
    """Write a LiteRT file, for phones and small servers.

    It has a signature `tokens_N` for each length N, which takes `token_ids`,
    `segment_ids` and `padding_mask`, int32 [1, N]; the weights are in it once. The
    vocabulary and all that an answer needs are in a zip archive at its end, so that
    `albert_tf_lite.LiteRTModel` takes strings. What runs it needs no TensorFlow.

    Args:
        task: an `AlbertTextClassifier`, `AlbertTextRegressor`,
            `AlbertTokenClassifier`, `AlbertTextEmbedder` or `AlbertSentenceOrder` with
            a preprocessor.
        path: string, the file, such as `"model.tflite"`.
        precision: `"float32"`; `"float16"` for half the size; `"int8"` for a quarter,
            and the fastest: weights in 8 bits, each batch of activations quantized as
            it comes.
        lengths: ints, the tokens of each signature. A text is run by the shortest that
            holds it, and cut to the longest. None is longer than the
            `sequence_length` of the preprocessor.

    Raises:
        TypeError: if the task is none of these.
        AlbertError: if `precision` is unknown, `lengths` are not positive, or the model
            has no preprocessor or was quantized.

    Example:
    ```python
    albert_tf.export.litert(classifier, "model.tflite", precision="int8")
    albert_tf.export.LiteRTModel("model.tflite").predict(["很好"])
    ```
    """
    check_precision(precision, PRECISIONS)
    if keras.backend.backend() != "tensorflow":
        raise AlbertError(
            f"Keras runs on {keras.backend.backend()}, and a LiteRT file is written on "
            "TensorFlow. Save the model by `save_to_preset`, and export that where "
            "KERAS_BACKEND=tensorflow."
        )
    if not lengths or min(lengths) < 5:
        raise AlbertError(
            "`lengths` must be one number or more, of 5 tokens at least, which is "
            f"[CLS] a [SEP] b [SEP]. Received: {list(lengths)}"
        )
    contents = contents_of(task)
    most = contents.settings["sequence_length"]
    lengths = sorted({min(int(length), most) for length in lengths})
    contents.settings.update(lengths=lengths, sequence_length=lengths[-1])
    network = _convert(
        rebuild(task, lengths[-1]), lengths, precision, contents.settings
    )
    with complete_file(path) as temporary:
        temporary.write_bytes(network)
        # As TensorFlow's own tools append files: interpreters do not read that far.
        with zipfile.ZipFile(temporary, "a", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.files().items():
                archive.writestr(name, content)


def _convert(task, lengths, precision, settings):
    """The network, bytes."""
    module = tf.Module()
    module.weights = [variable.value for variable in task.weights]
    functions = {f"tokens_{n}": _function(task, n, settings) for n in lengths}
    with tempfile.TemporaryDirectory() as folder:
        # From the variables themselves: a concrete function would hold their values.
        tf.saved_model.save(module, folder, signatures=functions)
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=list(functions)
        )
        if precision != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if precision == "float16":
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()


def _function(task, length, settings):
    names = list(task.input)
    specs = [tf.TensorSpec([1, length], tf.int32, name=name) for name in names]

    @tf.function(input_signature=specs, autograph=False)
    def call(*values):
        inputs = dict(zip(names, values, strict=True))
        return {settings["output"]: task(inputs, training=False)}

    return call
