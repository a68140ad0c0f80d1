"""The accuracy of outputs per token, without padding."""

import keras
from keras import ops

from albert_tf.trainers.batching import PADDING_TARGET


@keras.saving.register_keras_serializable(package="albert_tf")
class TokenAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Share of the tokens whose class is right, except those of `PADDING_TARGET`.

    Each token counts alike, in a batch of any length. Keras' own metrics take the mean
    of a row over its tokens and padding first, so that tokens of a batch of long texts
    would count less than those of short ones.
    """

    def update_state(self, y_true, y_pred, sample_weight=None):
        counted = ops.cast(y_true != PADDING_TARGET, self.dtype)
        if sample_weight is not None:
            weight = ops.cast(sample_weight, self.dtype)
            # One weight per text or per token.
            is_per_text = len(weight.shape) < len(y_true.shape)
            counted *= weight[:, None] if is_per_text else weight
        super().update_state(
            ops.reshape(ops.maximum(y_true, 0), [-1]),
            ops.reshape(y_pred, [-1, y_pred.shape[-1]]),
            ops.reshape(counted, [-1]),
        )
