from __future__ import annotations

from typing import Any

import keras
import keras_hub
import tensorflow as tf
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.arguments import warn_of_new_head
from albert_tf.models.pooling import check_pooling_mode, pool_text
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.examples import (
    check_class_names,
    class_ids,
    dataset_class_ids,
)
from albert_tf_lite.answers import classify, ranked
from albert_tf_lite.errors import AlbertError

# Losses of Keras that take probabilities if they are given by name.
_CROSSENTROPIES = {
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    "binary_focal_crossentropy": keras.losses.BinaryFocalCrossentropy,
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "categorical_focal_crossentropy": keras.losses.CategoricalFocalCrossentropy,
    "sparse_categorical_crossentropy": keras.losses.SparseCategoricalCrossentropy,
}


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifier(AlbertTask, keras_hub.models.TextClassifier):
    """ALBERT with a classification head: one class per text or pair of texts.

    `fit`, `evaluate` and `predict` take strings; the classes of the texts are ids, or
    names of `labels`.

    Args:
        backbone: an `AlbertBackbone`.
        num_classes: int.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the
            inputs are ids already.
        activation: optional string or callable for the output, such as
            `"softmax"`. By default the model returns logits.
        dropout: float. Rate between the pooled output and the head, apart from
            the encoder's own.
        labels: optional list of `num_classes` strings, the names of the classes.
        pairs: bool. Whether an example is a pair of texts; `fit` sets it.
        pooling_mode: `"cls"`, the pooled output of the backbone, as the releases were
            fine-tuned, or `"mean"` of the tokens' last hidden states (or `"max"`,
            `"first_last_mean"`), which needs fewer examples in small models.
        compile: bool. Compile with the defaults.

    Returns:
        Logits, or the result of `activation`, [batch, num_classes].

    Raises:
        AlbertError: if `labels` has not `num_classes` different names, `pooling_mode`
            is unknown, or the preprocessor does not fit the backbone.

    Example:
    ```python
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "albert_tiny_zh", num_classes=2
    )
    classifier.fit(["很好", "太差了"], [1, 0])
    classifier.predict(["还不错"])
    ```

    Reference:
        google-research/albert `classifier_utils.py`, `create_model`.
    """

    name_of_task = "text-classification"
    fields = ("text", "text_pair")
    optional_fields = ("text_pair",)
    preprocessor_cls = AlbertTextClassifierPreprocessor
    heads = ("classifier",)
    monitor = "accuracy"
    multi_label = False
    thresholds = None
    # What makes probabilities of logits.
    probability_activation = staticmethod(keras.activations.softmax)
    _takes_class_weight = True

    def __init__(
        self,
        backbone: AlbertBackbone,
        num_classes: int,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        activation: Any = None,
        dropout: float = 0.1,
        labels: list[str] | None = None,
        pairs: bool = False,
        pooling_mode: str = "cls",
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = self.head_dropout(dropout)
        self.output_dense = self.dense_head(num_classes, "logits", activation)

        # === Config ===
        self.num_classes = num_classes
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.labels = check_class_names(labels, num_classes)
        self.pairs = pairs
        self.pooling_mode = check_pooling_mode(pooling_mode)

        # === Functional Model ===
        pooled = self.output_dropout(pool_text(backbone, pooling_mode))
        outputs = self.output_dense(pooled)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        config = checkpoint.head_config("classifier")
        if config.pop("multi_label", False) and not cls.multi_label:
            raise AlbertError(
                f"{checkpoint.path} is a multi-label classifier. Load it by "
                "AlbertMultiLabelClassifier.from_checkpoint."
            )
        if not cls.multi_label:
            config.pop("thresholds", None)
        found = checkpoint.num_classes("classifier")
        named = len(arguments.get("labels") or ())
        wanted = arguments.get("num_classes") or named or found
        if not wanted:
            raise AlbertError(
                f"{checkpoint.path} has no classification head. Give `num_classes=` "
                "or `labels=` to begin with a new one."
            )
        if wanted == found:
            return {**config, **arguments, "num_classes": found}, []
        if found:
            warn_of_new_head(checkpoint, "classifier", wanted)
        return {**arguments, "num_classes": wanted}, ["classifier"]

    @classmethod
    def has_heads_in(cls, checkpoint):
        config = checkpoint.head_config("classifier")
        return bool(config) and config.get("multi_label", False) >= cls.multi_label

    # === Labels in ===

    @property
    def class_names(self) -> list[str]:
        """The labels, or the numbers of the classes if they have none."""
        return list(self.labels or map(str, range(self.num_classes)))

    @property
    def gives_logits(self) -> bool:
        """Whether the model returns logits, not probabilities."""
        return self.activation is not self.probability_activation

    def compile(self, optimizer: Any = "auto", loss: Any = "auto", **kwargs: Any):
        """As `AutoCompile.compile`; a loss of Keras by its name takes logits if the
        model returns them."""
        if self.gives_logits and isinstance(loss, str) and loss in _CROSSENTROPIES:
            loss = _CROSSENTROPIES[loss](from_logits=True)
        super().compile(optimizer=optimizer, loss=loss, **kwargs)

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=self.gives_logits)

    def default_metrics(self):
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def targets(self, x, y, packed=None):
        # Another loss may want scores, or one column per class.
        takes_ids = isinstance(self.loss, keras.losses.SparseCategoricalCrossentropy)
        classes = self.num_classes if self._loss_is_default or takes_ids else None
        return class_ids(x, y, classes, self.labels)

    def prepare_dataset(self, dataset, fixed=False):
        return (
            dataset if self.labels is None else dataset_class_ids(dataset, self.labels)
        )

    # === Answers out ===

    def class_logits(self, outputs: Any) -> Any:
        """Return logits whose softmax over the last axis are the probabilities.

        Args:
            outputs: float tensor [batch, num_classes], the outputs of the model.
        """
        return outputs if self.gives_logits else log_probabilities(outputs)

    def probabilities(self, outputs: Any) -> Any:
        """Return the probabilities [batch, num_classes] for outputs of the model."""
        if self.activation is keras.activations.linear:
            return self.probability_activation(outputs)
        return outputs

    def answers(self, outputs: Any, labels: list[str] | None = None) -> dict[str, Any]:
        """Return `label`, `label_id` and `probabilities` for outputs of the model.

        Args:
            outputs: float tensor [batch, num_classes].
            labels: optional list of names, instead of `class_names`.
        """
        probabilities = self.probabilities(outputs)
        label_id = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        label = tf.gather(tf.constant(self.names_of_answers(labels)), label_id)
        return {"label": label, "label_id": label_id, "probabilities": probabilities}

    def names_of_answers(self, labels: list[str] | None) -> list[str]:
        """Return the names given to `answers`, one per class, or `class_names`."""
        names = self.class_names if labels is None else list(map(str, labels))
        if len(names) != self.num_classes:
            raise AlbertError(
                f"`labels` must name each of the {self.num_classes} classes. "
                f"Received {len(names)}: {names}"
            )
        return names

    def predict_dicts(self, x, batch_size=None, top_k=1):
        """Return `label` and `score` of the likeliest class.

        Args:
            x: as for `predict`.
            batch_size: optional int.
            top_k: optional int. With more than 1, return a list of the `top_k`
                likeliest classes; `None` for all.
        """
        outputs = self.predict(x, batch_size, verbose=0)
        found = classify(outputs, self.exported_settings())
        return ranked(self.class_names, found["probabilities"], top_k)

    def exported_settings(self):
        is_linear = self.activation is keras.activations.linear
        return {
            "task": self.name_of_task,
            "output": "logits" if is_linear else "probabilities",
            "labels": self.class_names,
            # What is left to do.
            "activation": self.probability_activation.__name__ if is_linear else None,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "labels": None if self.labels is None else list(self.labels),
            "pairs": self.pairs,
            "pooling_mode": self.pooling_mode,
        }


def log_probabilities(probabilities: Any) -> Any:
    """Return logarithms that are finite for 0, too."""
    return ops.log(ops.maximum(probabilities, keras.config.epsilon()))
