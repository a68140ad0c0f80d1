"""Reshape examples of several choices to the sequences of the encoder and back."""

from __future__ import annotations

import keras
from keras import ops

from albert_tf.layers.common import Tensor

# The score of a missing choice, if an example has fewer choices than others.
NO_CHOICE = -1e9


@keras.saving.register_keras_serializable(package="albert_tf")
class FlattenChoices(keras.layers.Layer):
    """Reshape [batch, choices, time] to [batch * choices, time]."""

    def call(self, inputs: Tensor) -> Tensor:
        return ops.reshape(inputs, (-1, ops.shape(inputs)[-1]))

    def compute_output_spec(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        return keras.KerasTensor((None, inputs.shape[-1]), inputs.dtype)


@keras.saving.register_keras_serializable(package="albert_tf")
class UnflattenScores(keras.layers.Layer):
    """Reshape scores [batch * choices, 1] to [batch, choices].

    Call arguments:
        scores: float tensor [batch * choices, 1].
        padding_mask: int tensor [batch, choices, time]. A choice without any token is
            missing and has the score -1e9.
    """

    def call(self, scores: Tensor, padding_mask: Tensor) -> Tensor:
        is_choice = ops.any(ops.cast(padding_mask, "bool"), axis=-1)
        scores = ops.reshape(scores, ops.shape(is_choice))
        return ops.where(is_choice, scores, NO_CHOICE)

    def compute_output_spec(
        self, scores: keras.KerasTensor, padding_mask: keras.KerasTensor
    ) -> keras.KerasTensor:
        return keras.KerasTensor(padding_mask.shape[:2], scores.dtype)
