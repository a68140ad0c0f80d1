from __future__ import annotations

from typing import Any

import keras
import keras_hub

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.class_weights import WeighsClasses
from albert_tf.models.label_kinds import MultiLabel, SingleLabel
from albert_tf.models.task import AlbertTask, warn_of_new_head
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.models.text_windows import ReadsWindows
from albert_tf.models.thresholds import (
    DEFAULT_THRESHOLD,
    TunesThresholds,
    check_thresholds,
)
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.examples import check_class_names


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifier(
    WeighsClasses,
    TunesThresholds,
    ReadsWindows,
    FitsTexts,
    AlbertTask,
    keras_hub.models.TextClassifier,
):
    """ALBERT with a classification head: strings or pairs of strings in.

    `fit`, `evaluate` and `predict` take strings as KerasHub's classifiers do; see
    `FitsTexts`, and `AutoCompile` for the defaults of `compile`. The classes of the
    texts are ids, or names of `labels`; of a multi-label model a list of names for
    each text, or an array of 0 and 1 [examples, num_classes].

    Args:
        backbone: an `AlbertBackbone`.
        num_classes: int.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the
            inputs are ids already.
        activation: optional string or callable for the output, such as
            `"softmax"`, or `"sigmoid"` of a multi-label model. Without it the model
            gives logits.
        dropout: float. Rate between the pooled output and the head, apart from
            the encoder's own.
        labels: optional list of `num_classes` strings, the names of the classes.
        pairs: bool. Whether an example is a pair of texts; `fit` sets it.
        multi_label: bool. Whether a text has any number of classes, not one.
        thresholds: optional list of `num_classes` floats, the probability from which
            on a multi-label model gives a text the class; `tune_thresholds` sets
            them. By default 0.5.
        compile: bool. Compile with the defaults.

    Returns:
        Logits, or what `activation` makes of them, [batch, num_classes].

    Raises:
        ValueError: if `labels` has not `num_classes` different names, `thresholds` not
            as many numbers, or the preprocessor does not fit the backbone.

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
        multi_label: bool = False,
        thresholds: list[float] | None = None,
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
        self.multi_label = multi_label
        self.thresholds = check_thresholds(thresholds, num_classes)

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

    @property
    def _label_kind(self):
        return MultiLabel if self.multi_label else SingleLabel

    @property
    def _gives_logits(self):
        return self.activation is not self._label_kind.activation

    def default_loss(self):
        return self._label_kind.loss(self._gives_logits)

    def default_metrics(self):
        return {"metrics": self._label_kind.metrics(self._gives_logits)}

    def targets(self, x, y):
        # Another loss may want scores, or one column a class.
        any_numbers = not (self._loss_is_default or self.multi_label)
        classes = None if any_numbers else self.num_classes
        return self._label_kind.targets(x, y, classes, self.labels)

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
            raise ValueError(
                f"`labels` must name each of the {self.num_classes} classes. "
                f"Received {len(names)}: {names}"
            )
        if self.activation is keras.activations.linear:
            outputs = self._label_kind.activation(outputs)
        thresholds = self.thresholds or [DEFAULT_THRESHOLD] * self.num_classes
        return self._label_kind.answers(outputs, names, thresholds)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "labels": None if self.labels is None else list(self.labels),
            "pairs": self.pairs,
            "multi_label": self.multi_label,
            "thresholds": self.thresholds and list(self.thresholds),
        }
