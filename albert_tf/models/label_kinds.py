"""What differs between texts with one class each and with any number of them."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from albert_tf.models.thresholds import DEFAULT_THRESHOLD
from albert_tf.preprocessing.labels import class_ids, dataset_class_ids, multi_hot
from albert_tf_lite.errors import AlbertError

# By Keras' names of them, under which they take probabilities.
_CROSSENTROPIES = {
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    "binary_focal_crossentropy": keras.losses.BinaryFocalCrossentropy,
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "categorical_focal_crossentropy": keras.losses.CategoricalFocalCrossentropy,
    "sparse_categorical_crossentropy": keras.losses.SparseCategoricalCrossentropy,
}


def _log(probabilities):
    return ops.log(ops.maximum(probabilities, keras.config.epsilon()))


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
    def logits(outputs: Any, from_logits: bool) -> Any:
        return outputs if from_logits else _log(outputs)

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
    def logits(outputs: Any, from_logits: bool) -> Any:
        if from_logits:
            return ops.stack([ops.zeros_like(outputs), outputs], axis=-1)
        return _log(ops.stack([1 - outputs, outputs], axis=-1))

    @staticmethod
    def answers(probabilities: Any, names: list[str], thresholds: Any) -> dict:
        probabilities = tf.convert_to_tensor(probabilities)
        chosen = probabilities >= tf.cast(thresholds, probabilities.dtype)
        labels = tf.where(chosen, tf.constant(names), "")
        return {"labels": labels, "chosen": chosen, "probabilities": probabilities}


class GivesLabels:
    """A classifier: what its classes are called, learn from and answer."""

    @property
    def class_names(self) -> list[str]:
        """The labels, or the numbers of the classes if they have none."""
        return list(self.labels or map(str, range(self.num_classes)))

    @property
    def _label_kind(self):
        return MultiLabel if self.multi_label else SingleLabel

    @property
    def _gives_logits(self):
        return self.activation is not self._label_kind.activation

    def class_logits(self, outputs: Any) -> Any:
        """Logits whose softmax over the last axis are the probabilities.

        Args:
            outputs: float tensor [batch, num_classes], what the model gives.

        Returns:
            Of the same shape; of a multi-label model [batch, num_classes, 2], that a
            text has not the class, and that it has.
        """
        return self._label_kind.logits(outputs, self._gives_logits)

    def compile(self, optimizer: Any = "auto", loss: Any = "auto", **kwargs: Any):
        """As `AutoCompile.compile`; a loss of Keras by its name takes logits if the
        model gives them."""
        if self._gives_logits and isinstance(loss, str) and loss in _CROSSENTROPIES:
            loss = _CROSSENTROPIES[loss](from_logits=True)
        super().compile(optimizer=optimizer, loss=loss, **kwargs)

    def default_loss(self):
        return self._label_kind.loss(self._gives_logits)

    def default_metrics(self):
        return {"metrics": self._label_kind.metrics(self._gives_logits)}

    def targets(self, x, y):
        # Another loss may want scores, or one column a class.
        takes_ids = isinstance(self.loss, keras.losses.SparseCategoricalCrossentropy)
        any_numbers = not (self._loss_is_default or self.multi_label or takes_ids)
        classes = None if any_numbers else self.num_classes
        return self._label_kind.targets(x, y, classes, self.labels)

    def dataset_targets(self, dataset):
        if self.labels is None or self.multi_label:
            return dataset
        return dataset_class_ids(dataset, self.labels)

    def answers(self, outputs: Any, labels: list[str] | None = None) -> dict[str, Any]:
        """`label`, `label_id` and `probabilities` of what the model gives.

        Of a multi-label model `labels` (string [batch, num_classes], empty where the
        text has not the class), `chosen` (bool, where it has) and `probabilities`.

        Args:
            outputs: float tensor [batch, num_classes].
            labels: optional list of names, instead of `class_names`.
        """
        names = self.class_names if labels is None else list(map(str, labels))
        if len(names) != self.num_classes:
            raise AlbertError(
                f"`labels` must name each of the {self.num_classes} classes. "
                f"Received {len(names)}: {names}"
            )
        if self.activation is keras.activations.linear:
            outputs = self._label_kind.activation(outputs)
        thresholds = self.thresholds or [DEFAULT_THRESHOLD] * self.num_classes
        return self._label_kind.answers(outputs, names, thresholds)
