"""The graph of an exported task: strings in, answers out."""

from typing import Any

import keras
import tensorflow as tf

from albert_tf_lite.errors import AlbertError

# Rows that the encoder reads at once, so that the windows of a text of 100,000
# characters, or a request of as many texts, take no more memory than those of a batch.
ROWS_AT_A_TIME = 64


class ServingModule(tf.Module):
    """The graph, and the variables themselves, so that each is written once.

    `specs` are the texts, `options` those of `albert_tf.export.saved_model`. The
    signatures are `functions`, by name.
    """

    def __init__(self, task: Any, specs: list, options: dict, dtype: str | None):
        super().__init__()
        self._weights = [_stored(variable, dtype) for variable in task.weights]
        model, options = task, dict(options)
        patience = options.pop("early_exit", None)
        if patience is not None:
            if not hasattr(task, "exiting"):
                raise AlbertError(f"`early_exit` is not for a {type(task).__name__}.")
            model = task.exiting(patience)
        ids = [
            tf.TensorSpec(tensor.shape, tensor.dtype, name=name)
            for name, tensor in task.input.items()
        ]

        # Without AutoGraph, which would wrap what `answers` raises.
        @tf.function(input_signature=ids, autograph=False)
        def call(*values):
            inputs = dict(zip(task.input, values, strict=True))
            if dtype is None:
                return model(inputs, training=False)
            cast = [
                (variable, tf.cast(weight, variable.dtype))
                for variable, weight in zip(task.weights, self._weights, strict=True)
            ]
            with keras.StatelessScope(cast):
                return model(inputs, training=False)

        # These call the function above, so that the encoder is in the graph once.
        @tf.function(input_signature=ids, autograph=False)
        def answer(*values):
            return task.answers(call(*values), **options)

        # A text may come as [batch] and as [batch, 1].
        texts_in = [
            tf.TensorSpec(None if x.shape.rank == 1 else x.shape, x.dtype, x.name)
            for x in specs
        ]

        @tf.function(input_signature=texts_in, autograph=False)
        def answer_texts(*texts):
            def call_named(inputs):
                return _in_parts(call, [inputs[name] for name in task.input])

            return task.text_answers(_checked(texts, specs), call_named, **options)

        self.functions = {"serving_default": answer_texts, "tokens": answer}
        # Here, so that wrong options are found before anything is written.
        answer.get_concrete_function()


def _stored(variable, dtype):
    if dtype is None or not keras.backend.is_float_dtype(variable.dtype):
        return variable.value
    return tf.Variable(tf.cast(variable.value, dtype), name=variable.name)


def _in_parts(call, values):
    """Call a function of rows [batch, ...] for a limited number of rows at a time."""
    rows = tf.shape(values[0])[0]
    # At least one part, for the shape of the outputs of no rows.
    parts = tf.maximum((rows + ROWS_AT_A_TIME - 1) // ROWS_AT_A_TIME, 1)
    structure = call.get_concrete_function().structured_outputs
    specs = tf.nest.flatten(structure)
    arrays = tuple(
        tf.TensorArray(spec.dtype, parts, infer_shape=False, element_shape=spec.shape)
        for spec in specs
    )

    def compute(i, arrays):
        part = slice(i * ROWS_AT_A_TIME, (i + 1) * ROWS_AT_A_TIME)
        outputs = tf.nest.flatten(call(*(value[part] for value in values)))
        pairs = zip(arrays, outputs, strict=True)
        return i + 1, tuple(array.write(i, output) for array, output in pairs)

    _, arrays = tf.while_loop(
        lambda i, arrays: i < parts, compute, (0, arrays), parallel_iterations=1
    )
    outputs = [
        tf.ensure_shape(array.concat(), spec.shape)
        for array, spec in zip(arrays, specs, strict=True)
    ]
    return tf.nest.pack_sequence_as(structure, outputs)


def _checked(texts, specs):
    """Check the texts of a request, which a server does not compare with the signature.

    A check fails with the name of its node. Assertions would be stripped.
    """
    texts = [_check_shape(x, spec) for x, spec in zip(texts, specs, strict=True)]
    for text, spec in zip(texts[1:], specs[1:], strict=True):
        nothing = tf.strings.substr(text, 0, 0)
        if spec.shape.rank > 1:
            nothing = tf.strings.reduce_join(nothing, axis=1)
        name = f"as_many_{spec.name}_as_{specs[0].name}"
        texts[0] = tf.strings.join([texts[0], nothing], name=name)
    # No other operation reads the texts, and fails, before these checks.
    with tf.control_dependencies(texts[:1]):
        return (texts[0], *map(tf.identity, texts[1:]))


def _check_shape(text, spec):
    name = f"{spec.name}_of_a_batch"
    if spec.shape.rank > 1:
        return tf.ensure_shape(text, spec.shape, name=name)
    # Makes [batch] of [batch, 1], and fails for [batch, 2]. A text outside a list fails
    # after it.
    text = tf.reshape(text, tf.shape(text)[:1], name=name)
    return tf.ensure_shape(text, [None], name=f"{spec.name}_in_a_list")
