from __future__ import annotations

import os
import pathlib
from typing import Any

import keras
import tensorflow as tf

from albert_tf.export.model_card import write_card
from albert_tf.export.serving_module import ServingModule
from albert_tf.export.versions import plain_errors, written_directory
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError

_DTYPES = (None, "float32", "bfloat16")
# The first request of a length may take longer than others.
_WARMUP_LENGTHS = (16, 32, 64, 128, 256, 512)


def saved_model(
    task: AlbertTask,
    directory: str | os.PathLike,
    *,
    pairs: bool | None = None,
    version: int | str | None = None,
    dtype: str | None = None,
    **options: Any,
) -> pathlib.Path:
    """Write a SavedModel that takes strings, for TensorFlow Serving.

    It has two signatures, whose names are public interface (docs/serving.md):

    - `serving_default`: the texts of the task, string tensors [batch] or [batch, 1].
      For a classifier `text` and, if it takes pairs, `text_b`. An empty `text_b` is
      ignored.
    - `tokens`: the inputs of the model, `token_ids`, `segment_ids`, `padding_mask`,
      int32 [batch, time].

    Both return the outputs of `task.answers`. For a classifier: `label` (string),
    `label_id` (int32) and `probabilities` (float32 [batch, num_classes]). Loading needs
    tensorflow and the ops of tensorflow_text that TensorFlow Serving links. The
    directory contains the graph with the vocabulary, the weights, a model card
    (`README.md`), `labels.json` for a task with labels, and warm-up requests.

    Args:
        task: a task on texts with a preprocessor, such as an
            `AlbertTextClassifier`.
        directory: path. With `version` the directory of all versions of the model, such
            as `"serving/reviews"`; otherwise the directory to write, whose name is a
            version number, such as `"serving/reviews/1"`. An earlier export in it is
            replaced as a whole.
        pairs: optional bool. Whether the model takes pairs of texts. By default as in
            its last `fit`.
        version: optional int from 0, or `"next"` for the one after the highest in
            `directory`. An existing version is never replaced.
        dtype: optional string, the type of the written weights: `"float32"`, or
            `"bfloat16"` for half the size, which each request casts back. By default
            the type of the variables.
        **options: passed to `task.answers`. For a classifier `labels`, the names of
            the classes (by default its own or the class numbers), and `early_exit`, as
            in its `predict`.

    Returns:
        The path of the SavedModel.

    Raises:
        AlbertError: if Keras has another backend, the task has no preprocessor, or an
            argument is invalid, for example if the number of `labels` is not the number
            of classes.
        FileExistsError: if `version` exists, or `directory` holds other files.
        OSError: if writing fails, for example because the disk is full. Then nothing is
            changed.

    Example:
    ```python
    path = albert_tf.export.saved_model(
        classifier, "serving/reviews", version="next", labels=["差评", "好评"]
    )
    answers = tf.saved_model.load(path).signatures["serving_default"]
    answers(text=tf.constant(["很好"]))["label"]
    ```
    """
    _check(task, pairs, dtype)
    specs = task.text_specs
    if pairs is not None:
        names = ("text", "text_b")[: 1 + pairs]
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in names]
    module = ServingModule(task, specs, options, dtype)
    with plain_errors(directory), written_directory(directory, version) as written:
        temporary = str(written.temporary)
        tf.saved_model.save(
            module,
            temporary,
            signatures=module.functions,
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )
        _write_warmup(task, specs, temporary)
        write_card(task, module.functions, options.get("labels"), temporary)
    return written.path


def _check(task, pairs, dtype):
    if keras.backend.backend() != "tensorflow":
        raise AlbertError(
            f"Keras runs on {keras.backend.backend()}, but a SavedModel needs "
            "TensorFlow. Save the model with `save_to_preset`, and export it in a "
            "process with KERAS_BACKEND=tensorflow."
        )
    if task.preprocessor is None:
        raise AlbertError(
            "This model has no preprocessor, so an exported model cannot take strings. "
            "Pass a preprocessor with the vocabulary."
        )
    if pairs is not None and task.text_inputs[0] != "text":
        raise AlbertError(
            f"`pairs` is for tasks on single texts or pairs. This task takes "
            f"{', '.join(task.text_inputs)}. Leave `pairs` out."
        )
    if dtype not in _DTYPES:
        raise AlbertError(f"`dtype` must be one of {_DTYPES}. Received: {dtype!r}")


def _write_warmup(task, specs, directory):
    """Write `assets.extra/tf_serving_warmup_requests`, one request per length."""
    folder = pathlib.Path(directory, "assets.extra")
    folder.mkdir()
    longest = task.preprocessor.sequence_length
    lengths = [*(length for length in _WARMUP_LENGTHS if length < longest), longest]
    with tf.io.TFRecordWriter(str(folder / "tf_serving_warmup_requests")) as writer:
        for length in lengths:
            writer.write(_prediction_log(_warmup_texts(specs, length)))


def _warmup_texts(specs: list[tf.TensorSpec], length: int) -> dict[str, tf.Tensor]:
    """Return the texts of an example of about `length` tokens, [1] or [1, 1]."""
    # A Chinese character is one token in every vocabulary.
    texts = ["一[MASK]"] * len(specs)
    texts[0] += " 一" * max(length - 6, 0)
    return {
        spec.name: tf.constant(text, shape=[1] * spec.shape.rank)
        for spec, text in zip(specs, texts, strict=True)
    }


def _prediction_log(inputs: dict[str, tf.Tensor]) -> bytes:
    """Serialize a predict request as a `tensorflow.serving.PredictionLog`.

    Its message classes are in tensorflow-serving-api only, but a few fields suffice:
    PredictionLog.predict_log = 6, PredictLog.request = 1, PredictRequest.model_spec = 1
    with signature_name = 3, and PredictRequest.inputs = 2, a map.

    Reference:
        tensorflow/serving `prediction_log.proto`, `predict.proto`, `model.proto`.
    """
    request = _field(1, _field(3, b"serving_default"))
    for name, tensor in inputs.items():
        proto = tf.make_tensor_proto(tensor).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, proto))
    return _field(6, _field(1, request))


def _field(number, data):
    """Encode a field of bytes: number and wire type 2, length, bytes."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value):
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])
