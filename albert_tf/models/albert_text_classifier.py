from __future__ import annotations

from typing import Any

import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.task import AlbertTask, warn_of_new_head
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.examples import check_class_ids, check_class_names


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifier(FitsTexts, AlbertTask, keras_hub.models.TextClassifier):
    """ALBERT with a classification head: strings or pairs of strings in.

    `fit`, `evaluate` and `predict` take strings as KerasHub's classifiers do; see
    `FitsTexts`, and `AutoCompile` for the defaults of `compile`.

    Args:
        backbone: an `AlbertBackbone`.
        num_classes: int.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the
            inputs are ids already.
        activation: optional string or callable for the output, such as
            `"softmax"`. Without it the model gives logits.
        dropout: float. Rate between the pooled output and the head, apart from
            the encoder's own.
        labels: optional list of `num_classes` strings, the names of the classes.
        pairs: bool. Whether an example is a pair of texts; `fit` sets it.
        compile: bool. Compile with the defaults.

    Returns:
        Logits, or what `activation` makes of them, [batch, num_classes].

    Raises:
        ValueError: if `labels` has not `num_classes` different names, or the
            preprocessor's vocabulary or `sequence_length` does not fit the backbone.

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

    preprocessor_cls = AlbertTextClassifierPreprocessor
    heads = ("classifier",)

    def __init__(
        self,
        backbone: AlbertBackbone,
        num_classes: int,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        activation: Any = None,
        dropout: float = 0.1,
        labels: list[str] | None = None,
        pairs: bool = False,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=backbone.compute_dtype, name="output_dropout"
        )
        self.output_dense = self.dense_head(num_classes, "logits", activation)

        # === Config ===
        self.num_classes = num_classes
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.labels = check_class_names(labels, num_classes)
        self.pairs = pairs

        # === Functional Model ===
        pooled = self.output_dropout(backbone.pool(backbone.input))
        outputs = self.output_dense(pooled)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        found = checkpoint.num_classes("classifier")
        wanted = arguments.get("num_classes") or found
        if not wanted:
            raise ValueError(
                f"{checkpoint.path} has no classification head. Give `num_classes=` "
                "to begin with a new one."
            )
        if wanted == found:
            config = checkpoint.head_config("classifier")
            return {**config, **arguments, "num_classes": found}, []
        if found:
            warn_of_new_head(checkpoint, "classifier", wanted)
        return arguments, ["classifier"]

    @property
    def class_names(self) -> list[str]:
        """The labels, or the numbers of the classes if they have none."""
        return list(self.labels or map(str, range(self.num_classes)))

    def default_loss(self):
        softmax = self.activation is keras.activations.softmax
        return keras.losses.SparseCategoricalCrossentropy(from_logits=not softmax)

    def default_metrics(self):
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def targets(self, x, y):
        # Another loss may want scores, or one column a class.
        classes = self.num_classes if self._loss_is_default else None
        return check_class_ids(x, y, classes)

    def answers(self, outputs: Any, labels: list[str] | None = None) -> dict[str, Any]:
        """`label`, `label_id` and `probabilities` of what the model gives.

        Args:
            outputs: float tensor [batch, num_classes].
            labels: optional list of names, instead of `class_names`.
        """
        names = self.class_names if labels is None else list(map(str, labels))
        if len(names) != self.num_classes:
            raise ValueError(
                f"`labels` must name each of the {self.num_classes} classes. "
                f"Received {len(names)}: {names}"
            )
        if self.activation is keras.activations.linear:
            outputs = tf.nn.softmax(outputs)
        label_id = tf.argmax(outputs, axis=-1, output_type=tf.int32)
        label = tf.gather(tf.constant(names), label_id)
        return {"label": label, "label_id": label_id, "probabilities": outputs}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "labels": None if self.labels is None else list(self.labels),
            "pairs": self.pairs,
        }
