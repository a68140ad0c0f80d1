from __future__ import annotations

import os
import pathlib
from typing import Any

import keras
import tensorflow as tf

from albert_tf.export.model_card import write_card
from albert_tf.export.serving_module import ServingModule
from albert_tf.export.versions import plain_errors, written_directory
from albert_tf.export.warmup import write_warmup
from albert_tf.models.task import AlbertTask
from albert_tf_lite.errors import AlbertError

_DTYPES = (None, "float32", "bfloat16")


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

    It answers two signatures, whose names are public interface (docs/serving.md):

    - `serving_default`: the texts of the task, string tensors [batch] or [batch, 1].
      For a classifier `text`, and for one of pairs `text_b`, too. An empty `text_b` is
      no second text.
    - `tokens`: the inputs of the model, `token_ids`, `segment_ids`, `padding_mask`,
      int32 [batch, time].

    Both give what `task.answers` gives. For a classifier: `label` (string),
    `label_id` (int32) and `probabilities` (float32 [batch, num_classes]). Whoever
    loads it needs tensorflow and tensorflow_text, and of the latter only what
    TensorFlow Serving links. Beside the graph, with the vocabulary in it, and the
    weights stand a model card (`README.md`), `labels.json` for a task with labels, and
    requests that warm a server up.

    Args:
        task: a task on texts with a preprocessor, such as an
            `AlbertTextClassifier`.
        directory: string. With `version` the name of the model, such as
            `"serving/reviews"`; else the directory to write, whose name is a version
            number, such as `"serving/reviews/1"`. What is in such a one is replaced.
        pairs: optional bool. Whether the model takes pairs of texts. By default
            what it was last fitted on.
        version: optional int from 0, or `"next"` for the one after the highest in
            `directory`. A version that is there is never replaced.
        dtype: optional string, what the weights are written in: `"float32"`, or
            `"bfloat16"` for half the bytes; they are cast back for each request. By
            default as they are.
        **options: passed on to `task.answers`. For a classifier `labels`, the names
            of the classes, by default its own or the class numbers; and `early_exit`,
            as for its `predict`.

    Returns:
        The path of the SavedModel.

    Raises:
        AlbertError: if Keras runs on another backend, the task has no preprocessor,
            an argument is none of those above, or what `task.answers` raises: for a
            classifier, if `labels` has not one name a class.
        FileExistsError: if `version` is there.
        OSError: if it cannot be written, such as to a full disk; then nothing was.

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
        write_warmup(task, specs, temporary)
        write_card(task, module.functions, options.get("labels"), temporary)
    return written.path


def _check(task, pairs, dtype):
    if keras.backend.backend() != "tensorflow":
        raise AlbertError(
            f"Keras runs on {keras.backend.backend()}, and a SavedModel is written on "
            "TensorFlow. Save the model by `save_to_preset`, and export that where "
            "KERAS_BACKEND=tensorflow."
        )
    if task.preprocessor is None:
        raise AlbertError(
            "This model takes ids, for it has no preprocessor, and cannot be "
            "exported to take strings. Give it one, with the vocabulary."
        )
    if pairs is not None and task.text_inputs[0] != "text":
        raise AlbertError(
            f"`pairs` is for tasks on single texts or pairs. This one takes "
            f"{', '.join(task.text_inputs)}: leave it out."
        )
    if dtype not in _DTYPES:
        raise AlbertError(f"`dtype` must be one of {_DTYPES}. Received: {dtype!r}")
