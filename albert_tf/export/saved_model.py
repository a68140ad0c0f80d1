"""Write SavedModels: the graph, a model card and warm-up requests."""

import importlib.metadata
import os
import pathlib
from typing import Any

import keras
import tensorflow as tf

from albert_tf.export.description import check_backend, check_preprocessor
from albert_tf.export.serving_module import ServingModule
from albert_tf.export.versions import write_version
from albert_tf.files import write_json, write_text
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError

_DTYPES = (None, "float32", "bfloat16")
# The first request of a length may take longer than others.
_WARMUP_LENGTHS = (16, 32, 64, 128, 256, 512)

_CARD = """\
# {name}

A SavedModel that takes strings, written by `albert_tf.export.saved_model`.

| | |
|---|---|
{facts}

{signatures}

Names of inputs and outputs are those of docs/serving.md of albert-tf. The vocabulary is
in the graph, so the folder can be moved. Loading needs `tensorflow` and
`tensorflow_text`, but not `albert_tf`:

```python
import tensorflow as tf
import tensorflow_text  # Registers the operations of the tokenizer.

ask = tf.saved_model.load(".").signatures["serving_default"]
ask({example})
```
"""


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

    It has two signatures, which return the outputs of `task.answers`. Their names are
    public interface (docs/serving.md):

    - `serving_default` takes the texts, string tensors [batch] or [batch, 1]: for a
      classifier `text` and, if it takes pairs, `text_b`, which is ignored if empty.
    - `tokens` takes the inputs of the model, int32 [batch, time].

    Loading needs tensorflow and the ops of tensorflow_text that TensorFlow Serving
    links. The directory contains the graph with the vocabulary, the weights, a model
    card (`README.md`), `labels.json` for a task with labels, and warm-up requests.

    Args:
        task: a task with a preprocessor, such as an `AlbertTextClassifier`.
        directory: path to write, such as `"serving/reviews/1"`. An earlier export in it
            is replaced as a whole. With `version` the parent, `"serving/reviews"`.
        pairs: optional bool. Whether the model takes pairs of texts. By default as in
            its last `fit`.
        version: optional int from 0, or `"next"` for the one after the highest in
            `directory`. An existing version is never replaced.
        dtype: optional string, the type of the written weights: `"float32"`, or
            `"bfloat16"` for half the size, which each request casts back. By default
            the type of the variables.
        **options: options of `task.answers`. For a classifier `labels`, the names of
            the classes; for one with early exit also `early_exit`, the patience.

    Returns:
        The path of the SavedModel.

    Raises:
        AlbertError: if Keras has another backend, the task has no preprocessor, or an
            argument is invalid.
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
    check_backend()
    check_preprocessor(task)
    if dtype not in _DTYPES:
        raise AlbertError(f"`dtype` must be one of {_DTYPES}. Received: {dtype!r}")
    specs = task.text_specs
    if pairs is not None:
        inputs = ("text", "text_b")[: 1 + pairs]
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in inputs]
    names = getattr(task, "class_names", getattr(task, "tags", None))
    labels = options.get("labels") or names
    module = ServingModule(task, specs, options, dtype)

    def write(folder):
        tf.saved_model.save(
            module,
            str(folder),
            signatures=module.functions,
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )
        _write_warmup(task, specs, folder)
        if labels:
            write_json(folder / "labels.json", labels)
        write_text(folder / "README.md", _card(task, module.functions, labels))

    return write_version(directory, version, write)


# === Model card ===


def _card(task, functions, labels):
    backbone, tokenizer = task.backbone, task.preprocessor.tokenizer
    version = importlib.metadata.version("albert-tf")
    facts = {
        "task": type(task).__name__,
        "encoder": f"{backbone.num_layers} layers, {backbone.hidden_dim} wide, "
        f"{task.count_params():,} weights",
        "vocabulary": f"{tokenizer.vocabulary_size():,} tokens",
        "maximum number of tokens per text": task.preprocessor.sequence_length,
        "labels": ", ".join(map(str, labels or [])),
        "written by": f"albert-tf {version}, Keras {keras.__version__}",
        "TensorFlow": tf.__version__,
    }
    example = ", ".join(
        f"{spec.name}=tf.constant({[['很好']] if spec.shape.rank else ['很好']!r})"
        for spec in functions["serving_default"].input_signature
    )
    return _CARD.format(
        name=type(task).__name__,
        facts="\n".join(f"| {key} | {x} |" for key, x in facts.items() if x),
        signatures="\n\n".join(_signature(*item) for item in functions.items()),
        example=example,
    )


def _signature(name, function):
    outputs = function.get_concrete_function().structured_outputs
    rows = [("in", spec.name, spec) for spec in function.input_signature]
    rows += [("out", *item) for item in outputs.items()]
    lines = [f"| {way} | `{key}` | {_form(spec)} |" for way, key, spec in rows]
    head = [f"Signature `{name}`:", "", "| | name | type and shape |", "|---|---|---|"]
    return "\n".join([*head, *lines])


def _form(spec):
    if spec.shape.rank is None:
        return f"{spec.dtype.name} [batch] or [batch, 1]"
    sizes = ["batch", *("any" if size is None else size for size in spec.shape[1:])]
    return f"{spec.dtype.name} [{', '.join(map(str, sizes))}]"


# === Warm-up requests ===


def _write_warmup(task, specs, directory):
    """Write `assets.extra/tf_serving_warmup_requests`, one request per length."""
    folder = directory / "assets.extra"
    folder.mkdir()
    longest = task.preprocessor.sequence_length
    lengths = [*(length for length in _WARMUP_LENGTHS if length < longest), longest]
    with tf.io.TFRecordWriter(str(folder / "tf_serving_warmup_requests")) as writer:
        for length in lengths:
            # A Chinese character is one token in every vocabulary.
            texts = ["一[MASK]"] * len(specs)
            texts[0] += " 一" * max(length - 6, 0)
            writer.write(_prediction_log(specs, texts))


def _prediction_log(specs, texts):
    """Serialize a predict request as a `tensorflow.serving.PredictionLog`.

    Its message classes are in tensorflow-serving-api only, but a few fields suffice:
    PredictionLog.predict_log = 6, PredictLog.request = 1, PredictRequest.model_spec = 1
    with signature_name = 3, and PredictRequest.inputs = 2, a map.
    """
    request = _field(1, _field(3, b"serving_default"))
    for spec, text in zip(specs, texts, strict=True):
        tensor = tf.make_tensor_proto(text, tf.string, [1] * spec.shape.rank)
        value = _field(2, tensor.SerializeToString())
        request += _field(2, _field(1, spec.name.encode()) + value)
    return _field(6, _field(1, request))


def _field(number, data):
    """Encode a field of bytes: number and wire type 2, length, bytes."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value):
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])
