"""What differs between texts with one class each and with any number of them."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.labels import class_ids, multi_hot


class SingleLabel:
    """Each text has one class: softmax."""

    activation = staticmethod(keras.activations.softmax)
    targets = staticmethod(class_ids)

    @staticmethod
    def loss(from_logits: bool) -> keras.losses.Loss:
        return keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)

    @staticmethod
    def metrics(from_logits: bool) -> list[keras.metrics.Metric]:
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    @staticmethod
    def answers(probabilities: Any, names: list[str], thresholds: Any) -> dict:
        label_id = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        label = tf.gather(tf.constant(names), label_id)
        return {"label": label, "label_id": label_id, "probabilities": probabilities}


class MultiLabel:
    """A text has any number of classes: a sigmoid each."""

    activation = staticmethod(keras.activations.sigmoid)
    targets = staticmethod(multi_hot)

    @staticmethod
    def loss(from_logits: bool) -> keras.losses.Loss:
        return keras.losses.BinaryCrossentropy(from_logits=from_logits)

    @staticmethod
    def metrics(from_logits: bool) -> list[keras.metrics.Metric]:
        # Over all pairs of text and class, at every threshold.
        return [keras.metrics.AUC(curve="PR", from_logits=from_logits, name="pr_auc")]

    @staticmethod
    def answers(probabilities: Any, names: list[str], thresholds: Any) -> dict:
        probabilities = tf.convert_to_tensor(probabilities)
        chosen = probabilities >= tf.cast(thresholds, probabilities.dtype)
        labels = tf.where(chosen, tf.constant(names), "")
        return {"labels": labels, "chosen": chosen, "probabilities": probabilities}
