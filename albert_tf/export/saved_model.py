from __future__ import annotations

import os
from typing import Any

import keras
import tensorflow as tf

from albert_tf.files import complete_directory
from albert_tf.models.task import AlbertTask


def saved_model(
    task: AlbertTask,
    directory: str | os.PathLike,
    *,
    pairs: bool | None = None,
    **options: Any,
) -> None:
    """Write a SavedModel that takes strings, for TensorFlow Serving.

    It answers two signatures:

    - `serving_default`: the texts of the task, string tensors [batch]. For a
      classifier `text`, and for one of pairs `text_b`, too. An empty `text_b` is no
      second text.
    - `tokens`: the inputs of the model, `token_ids`, `segment_ids`, `padding_mask`,
      int32 [batch, time].

    Both give what `task.answers` gives. For a classifier: `label` (string),
    `label_id` (int32) and `probabilities` (float32 [batch, num_classes]). Whoever
    loads it needs tensorflow and tensorflow_text, and of the latter only what
    TensorFlow Serving links.

    Args:
        task: a task on texts with a preprocessor, such as an
            `AlbertTextClassifier`.
        directory: string. For TensorFlow Serving its name is a version number,
            such as `"serving/1"`.
        pairs: optional bool. Whether the model takes pairs of texts. By default
            what it was last fitted on.
        **options: passed on to `task.answers`. For a classifier `labels`, the names
            of the classes, by default its own or the class numbers; and `early_exit`,
            as for its `predict`.

    Raises:
        ValueError: if Keras runs on another backend, the task has no preprocessor,
            or what `task.answers` raises: for a classifier, if `labels` has not one
            name a class.

    Example:
    ```python
    albert_tf.export.saved_model(classifier, "serving/1", labels=["差评", "好评"])
    answers = tf.saved_model.load("serving/1").signatures["serving_default"]
    answers(text=tf.constant(["很好"]))["label"]
    ```
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"Keras runs on {keras.backend.backend()}, and a SavedModel is written on "
            "TensorFlow. Save the model by `save_to_preset`, and export that where "
            "KERAS_BACKEND=tensorflow."
        )
    if task.preprocessor is None:
        raise ValueError(
            "This model takes ids, for it has no preprocessor, and cannot be "
            "exported to take strings. Give it one, with the vocabulary."
        )
    specs = task.text_specs
    if pairs is not None:
        names = ("text", "text_b")[: 1 + pairs]
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in names]
    module = _ServingModule(task, specs, options)
    with complete_directory(directory) as temporary:
        tf.saved_model.save(
            module,
            str(temporary),
            signatures=module.functions,
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )


class _ServingModule(tf.Module):
    """The graph, and the variables themselves, so that each is written once."""

    def __init__(self, task, specs, options):
        super().__init__()
        self._weights = [variable.value for variable in task.weights]
        model, rule = task, options.pop("early_exit", None)
        if rule is not None:
            if not hasattr(task, "exiting"):
                raise ValueError(f"`early_exit` is not for a {type(task).__name__}.")
            model = task.exiting(rule)
        ids = [
            tf.TensorSpec(tensor.shape, tensor.dtype, name=name)
            for name, tensor in task.input.items()
        ]

        # Without AutoGraph, which would wrap what `answers` raises.
        @tf.function(input_signature=ids, autograph=False)
        def call(*values):
            return model(dict(zip(task.input, values, strict=True)), training=False)

        # These call the function above, so that the encoder stands in the graph once.
        @tf.function(input_signature=ids, autograph=False)
        def answer(*values):
            return task.answers(call(*values), **options)

        @tf.function(input_signature=specs)
        def answer_texts(*texts):
            def call_named(inputs):
                return call(*(inputs[name] for name in task.input))

            return task.text_answers(_checked(texts, specs), call_named, **options)

        self.functions = {"serving_default": answer_texts, "tokens": answer}
        # Here, so that wrong options are found before anything is written.
        answer.get_concrete_function()


def _checked(texts, specs):
    """The texts of a request, which a server does not compare with the signature."""
    texts = [
        tf.ensure_shape(text, spec.shape, name=f"{spec.name}_of_a_batch")
        for text, spec in zip(texts, specs, strict=True)
    ]
    # Joining fails by the name of its node where there are not as many. Assertions
    # would be stripped, and a reshape optimized away.
    nothing = tf.strings.substr(texts[0], 0, 0)
    for i, spec in enumerate(specs[1:], start=1):
        if spec.shape.rank == 1:
            name = f"as_many_{spec.name}_as_{specs[0].name}"
            texts[i] = tf.strings.join([texts[i], nothing], name=name)
    return tuple(texts)
