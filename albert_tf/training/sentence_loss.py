import keras
from keras import ops


@keras.saving.register_keras_serializable(package="albert_tf")
class SentenceLoss(keras.losses.Loss):
    """Binary cross-entropy at the tokens that stand for sentences.

    Call arguments:
        y_true: float tensor [batch, time], 1 or 0, and below 0 at all other tokens.
        y_pred: float tensor [batch, time], logits.

    Returns:
        The mean over the sentences of each example, then over the batch.
    """

    def __init__(self, name="sentence_loss", **kwargs):
        super().__init__(name=name, **kwargs)

    def call(self, y_true, y_pred):
        y_true = ops.cast(y_true, y_pred.dtype)
        is_sentence = ops.cast(y_true >= 0, y_pred.dtype)
        losses = (ops.softplus(y_pred) - y_true * y_pred) * is_sentence
        count = ops.maximum(ops.sum(is_sentence, axis=-1), 1)
        return ops.sum(losses, axis=-1) / count
