from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.evaluation import best_thresholds
from albert_tf.models.albert_text_classifier import (
    AlbertTextClassifier,
    log_probabilities,
)
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.examples import multi_hot
from albert_tf_lite.answers import chosen_of, classify_multi_label
from albert_tf_lite.errors import AlbertError

DEFAULT_THRESHOLD = 0.5


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultiLabelClassifier(AlbertTextClassifier):
    """ALBERT with a classification head: any number of classes per text.

    `fit` takes a list of names of `labels` for each text, or an array of 0 and 1
    [examples, num_classes]. The loss is the binary cross-entropy of each class.

    Args:
        backbone, num_classes, preprocessor, dropout, labels, pairs, pooling_mode,
            compile: as for `AlbertTextClassifier`.
        activation: optional string or callable for the output, such as `"sigmoid"`.
            By default the model returns logits.
        thresholds: optional list of `num_classes` floats: a text has a class if its
            probability is at least the threshold. By default 0.5; see
            `tune_thresholds`.

    Returns:
        Logits, or the result of `activation`, [batch, num_classes].

    Raises:
        AlbertError: as for `AlbertTextClassifier`, or if `thresholds` has not one
            number per class.

    Example:
    ```python
    classifier = albert_tf.models.AlbertMultiLabelClassifier.from_checkpoint(
        "albert_tiny_zh", labels=["体育", "财经", "娱乐"]
    )
    classifier.fit(["球队股价大涨", "新片上映"], [["体育", "财经"], ["娱乐"]])
    albert_tf.models.tune_thresholds(classifier, dev_texts, dev_labels)
    ```
    """

    # Hidden from `keras_hub.models.TextClassifier.from_preset`, see `Presets`.
    backbone_cls = None
    name_of_task = "multi-label"
    monitor = "micro_f1"
    multi_label = True
    probability_activation = staticmethod(keras.activations.sigmoid)
    _takes_class_weight = False

    def __init__(
        self,
        backbone: AlbertBackbone,
        num_classes: int,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        activation: Any = None,
        dropout: float = 0.1,
        labels: list[str] | None = None,
        pairs: bool = False,
        thresholds: list[float] | None = None,
        pooling_mode: str = "cls",
        **kwargs: Any,
    ):
        super().__init__(
            backbone,
            num_classes,
            preprocessor,
            activation=activation,
            dropout=dropout,
            labels=labels,
            pairs=pairs,
            pooling_mode=pooling_mode,
            **kwargs,
        )
        self.thresholds = _checked(thresholds, num_classes)

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        if "num_classes" in kwargs:
            # The preset's thresholds belong to its own head.
            kwargs.setdefault("thresholds", None)
        return super().from_preset(preset, load_weights, **kwargs)

    def default_loss(self):
        return keras.losses.BinaryCrossentropy(from_logits=self.gives_logits)

    def default_metrics(self):
        # Over all pairs of text and class, at every threshold.
        options = {"from_logits": self.gives_logits, "name": "pr_auc"}
        return {"metrics": [keras.metrics.AUC(curve="PR", **options)]}

    def targets(self, x, y, packed=None):
        return multi_hot(x, y, self.num_classes, self.labels)

    def prepare_dataset(self, dataset, fixed=False):
        return dataset

    def class_logits(self, outputs: Any) -> Any:
        """Return logits [batch, num_classes, 2]: that a text lacks the class and that
        it has it."""
        if self.gives_logits:
            return ops.stack([ops.zeros_like(outputs), outputs], axis=-1)
        return log_probabilities(ops.stack([1 - outputs, outputs], axis=-1))

    def answers(self, outputs: Any, labels: list[str] | None = None) -> dict[str, Any]:
        """Return `labels`, `chosen` and `probabilities`, [batch, num_classes].

        `labels` are strings, empty where the text has not the class; `chosen` is
        whether it has.

        Args:
            outputs: float tensor [batch, num_classes].
            labels: optional list of names, instead of `class_names`.
        """
        probabilities = tf.convert_to_tensor(self.probabilities(outputs))
        thresholds = self.exported_settings()["thresholds"]
        chosen = probabilities >= tf.cast(thresholds, probabilities.dtype)
        names = tf.where(chosen, tf.constant(self.names_of_answers(labels)), "")
        return {"labels": names, "chosen": chosen, "probabilities": probabilities}

    def predict_dicts(self, x, batch_size=None, top_k="auto"):
        """Return a list of `label` and `score`: the classes that the text has.

        Args:
            x: as for `predict`.
            batch_size: optional int.
            top_k: optional int. Return the `top_k` likeliest classes instead, `None`
                for all.
        """
        outputs = self.predict(x, batch_size, verbose=0)
        found = classify_multi_label(outputs, self.exported_settings())
        values = found["probabilities"], found["chosen"]
        return chosen_of(self.class_names, *values, top_k)

    def exported_settings(self):
        thresholds = self.thresholds or [DEFAULT_THRESHOLD] * self.num_classes
        return {**super().exported_settings(), "thresholds": thresholds}

    def get_config(self) -> dict[str, Any]:
        thresholds = self.thresholds and list(self.thresholds)
        return {**super().get_config(), "thresholds": thresholds}


def tune_thresholds(
    classifier: AlbertMultiLabelClassifier,
    x: Any,
    y: Any,
    batch_size: int | None = None,
) -> None:
    """Set the thresholds of a multi-label classifier to those with the best F1.

    Args:
        classifier: an `AlbertMultiLabelClassifier`.
        x, y: labelled texts that it was not trained on, as for `fit`.
        batch_size: optional int.

    Raises:
        AlbertError: if the classifier is not multi-label, or `y` not as for `fit`.
    """
    if not isinstance(classifier, AlbertMultiLabelClassifier):
        raise AlbertError(
            "Only an AlbertMultiLabelClassifier has thresholds. Received: "
            f"{type(classifier).__name__}"
        )
    truth = classifier.targets(x, y)
    outputs = classifier.predict(x, batch_size, verbose=0)
    found = classify_multi_label(outputs, classifier.exported_settings())
    classifier.thresholds = best_thresholds(
        truth, found["probabilities"], DEFAULT_THRESHOLD
    )


def _checked(
    thresholds: Sequence[float] | None, num_classes: int
) -> list[float] | None:
    if thresholds is None:
        return None
    if len(thresholds) != num_classes:
        raise AlbertError(
            f"`thresholds` must have a number for each of the {num_classes} classes. "
            f"Received {len(thresholds)}: {list(thresholds)}"
        )
    return [float(threshold) for threshold in thresholds]
