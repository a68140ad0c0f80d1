"""Warm-up requests for TensorFlow Serving."""

from __future__ import annotations

import pathlib

import tensorflow as tf

from albert_tf.models.task import AlbertTask

# The first request of a length may take longer than others.
_LENGTHS = (16, 32, 64, 128, 256, 512)


def write_warmup(task: AlbertTask, specs: list[tf.TensorSpec], directory: str) -> None:
    """Write `assets.extra/tf_serving_warmup_requests`, one request per length.

    Args:
        task: a task on texts.
        specs: `tf.TensorSpec`s of its texts, with names.
        directory: path of the SavedModel.
    """
    folder = pathlib.Path(directory, "assets.extra")
    folder.mkdir()
    with tf.io.TFRecordWriter(str(folder / "tf_serving_warmup_requests")) as writer:
        for length in _lengths(task.preprocessor.sequence_length):
            writer.write(prediction_log(warmup_texts(specs, length)))


def warmup_texts(specs: list[tf.TensorSpec], length: int) -> dict[str, tf.Tensor]:
    """Return the texts of an example of about `length` tokens, [1] or [1, 1]."""
    # A Chinese character is one token in every vocabulary.
    texts = ["一[MASK]"] * len(specs)
    texts[0] += " 一" * max(length - 6, 0)
    return {
        spec.name: tf.constant(text, shape=[1] * spec.shape.rank)
        for spec, text in zip(specs, texts, strict=True)
    }


def prediction_log(inputs: dict[str, tf.Tensor]) -> bytes:
    """Serialize a predict request as a `tensorflow.serving.PredictionLog`.

    Its message classes are in tensorflow-serving-api only, but a few fields suffice:
    PredictionLog.predict_log = 6, PredictLog.request = 1, PredictRequest.model_spec = 1
    with signature_name = 3, and PredictRequest.inputs = 2, a map.

    Args:
        inputs: dict of tensors by name.

    Reference:
        tensorflow/serving `prediction_log.proto`, `predict.proto`, `model.proto`.
    """
    request = _field(1, _field(3, b"serving_default"))
    for name, tensor in inputs.items():
        proto = tf.make_tensor_proto(tensor).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, proto))
    return _field(6, _field(1, request))


def _lengths(longest):
    return [length for length in _LENGTHS if length < longest] + [longest]


def _field(number, data):
    """Encode a field of bytes: number and wire type 2, length, bytes."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value):
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])
