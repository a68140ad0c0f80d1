"""The accuracy of tags, without those of padding."""

import keras

from albert_tf.trainers.batching import PADDING_TARGET


@keras.saving.register_keras_serializable(package="albert_tf")
class TagAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Accuracy of the tags of tokens, except those of `PADDING_TARGET`."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        counted = keras.ops.cast(y_true != PADDING_TARGET, self.dtype)
        if sample_weight is not None:
            weight = keras.ops.cast(sample_weight, self.dtype)
            # One weight per text or per token.
            counted *= weight[:, None] if len(weight.shape) == 1 else weight
        super().update_state(keras.ops.maximum(y_true, 0), y_pred, counted)
