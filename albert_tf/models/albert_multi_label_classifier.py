from typing import Any

import keras
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.albert_text_classifier import MULTI_LABEL, AlbertTextClassifier
from albert_tf.trainers.labels import dataset_targets, multi_hot
from albert_tf.trainers.prediction import Outputs
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_list

DEFAULT_THRESHOLD = 0.5


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultiLabelClassifier(AlbertTextClassifier):
    """ALBERT with a classification head: any number of classes per text.

    `fit` takes a list of values or names of `labels` for each text, or an array of 0
    and 1 [examples, num_classes]. The loss is the binary cross-entropy of each class.

    Args:
        backbone: an `AlbertBackbone`.
        num_classes: int.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the inputs
            are ids already.
        activation: optional string or callable for the output, such as `"sigmoid"`.
            By default the model returns logits.
        dropout: float. Rate before the head, apart from the encoder's own.
        labels: optional list (also an array, a Series or an Index) of `num_classes`
            strings or numbers, the classes in the order of the outputs.
        pairs: bool. An example is a pair of texts; `fit` sets it.
        pooling_mode: optional string. `"cls"`, the pooled output of the backbone, as
            the releases were fine-tuned, or `"mean"` of the tokens' last hidden states
            (or `"max"`, `"first_last_mean"`), which needs fewer examples in small
            models. By default that of the backbone's `fine_tuning`, else `"cls"`.
        temperature: float. Divides the logits before the sigmoid; see
            `tune_temperature`.
        thresholds: optional list of `num_classes` floats. A text has a class if its
            probability is at least the threshold. By default 0.5; see
            `tune_thresholds`.
        compile: bool. Compile with the defaults.

    Returns:
        Logits, or the result of `activation`, [batch, num_classes].

    Raises:
        AlbertError: if `labels` are not `num_classes` different names, `thresholds`
            are not one number per class, `pooling_mode` is unknown, `temperature` is
            not a positive number or not 1 beside an `activation`, or the preprocessor
            does not fit the backbone. By `fit` and `evaluate`, if a label is missing,
            is no class, or has two readings.

    Example:
    ```python
    classifier = albert_tf.models.AlbertMultiLabelClassifier.from_checkpoint(
        "albert_micro_zh", labels=["体育", "财经", "娱乐"]
    )
    classifier.fit(["球队股价大涨", "新片上映"], [["体育", "财经"], ["娱乐"]])
    classifier.postprocess(classifier.predict(["球队赢了"]))["chosen"]
    ```
    """

    # Hidden from `keras_hub.models.TextClassifier.from_preset`, see `Presets`.
    backbone_cls = None
    name_of_task = "multi-label"
    summaries = ("gives a text any number of labels", "文本多标签分类")
    monitor = "micro_f1"
    takes_class_weight = False
    problem_type = MULTI_LABEL
    targets_are = "columns"
    probability_activation = staticmethod(keras.activations.sigmoid)

    def __init__(
        self,
        backbone: AlbertBackbone,
        num_classes: int,
        *args: Any,
        thresholds: list[float] | None = None,
        **kwargs: Any,
    ):
        if thresholds is not None:
            thresholds = list(map(float, as_list(thresholds, "thresholds")))
        if thresholds is not None and len(thresholds) != num_classes:
            raise AlbertError(
                "`thresholds` must have a number for each of the "
                f"{num_classes} classes. Received {len(thresholds)}: {thresholds}"
            )
        super().__init__(backbone, num_classes, *args, **kwargs)
        self.thresholds = thresholds

    def default_loss(self):
        return keras.losses.BinaryCrossentropy(from_logits=self.gives_logits)

    def default_metrics(self):
        # Over all pairs of text and class, at every threshold.
        options = {"from_logits": self.gives_logits, "name": "pr_auc"}
        return {"metrics": [keras.metrics.AUC(curve="PR", **options)]}

    def targets(self, x, y, packed=None):
        return multi_hot(x, y, self.num_classes, self.labels)

    def prepare_dataset(self, examples, fixed):
        if not self.labels:
            return examples.x
        return dataset_targets(examples.x, self.labels, several=True)

    def postprocess(
        self, outputs: Outputs, labels: list[str] | None = None
    ) -> dict[str, Any]:
        """Return `labels`, `chosen` and `probabilities`, [batch, num_classes].

        `chosen` is true for the classes of a text, and `labels` has their names, empty
        for the others.

        Args:
            outputs: float tensor [batch, num_classes].
            labels: optional list of other names, instead of `class_names`.
        """
        probabilities = tf.convert_to_tensor(self.probabilities(outputs))
        thresholds = self.exported_settings()["thresholds"]
        chosen = probabilities >= tf.cast(thresholds, probabilities.dtype)
        names = self._names(labels)
        names = tf.where(chosen, tf.constant(names), "")
        return {"labels": names, "chosen": chosen, "probabilities": probabilities}

    def answers(self, x, batch_size=None, top_k="auto"):
        return super().answers(x, batch_size, top_k)

    def exported_settings(self) -> dict[str, Any]:
        thresholds = self.thresholds or [DEFAULT_THRESHOLD] * self.num_classes
        return {**super().exported_settings(), "thresholds": thresholds}
