from __future__ import annotations

from typing import Any

import keras
import keras_hub

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.class_weights import WeighsClasses
from albert_tf.models.early_exit import ExitsEarly, check_can_exit
from albert_tf.models.label_kinds import GivesLabels
from albert_tf.models.pooling import check_pooling_mode, pool_text
from albert_tf.models.r_drop import RDrop
from albert_tf.models.task import AlbertTask, warn_of_new_head
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.models.text_windows import ReadsWindows
from albert_tf.models.thresholds import TunesThresholds, check_thresholds
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.examples import check_class_names
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifier(
    RDrop,
    WeighsClasses,
    TunesThresholds,
    GivesLabels,
    ReadsWindows,
    ExitsEarly,
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
        pooling_mode: `"cls"`, the pooled output of the backbone, as the releases were
            fine-tuned, or `"mean"` of the tokens' last hidden states (or `"max"`,
            `"first_last_mean"`), which needs fewer examples in small models.
        early_exit: bool. Train every layer to classify, for `predict(texts,
            early_exit=2)`; see `ExitsEarly`.
        compile: bool. Compile with the defaults.

    Returns:
        Logits, or what `activation` makes of them, [batch, num_classes].

    Raises:
        AlbertError: if `labels` has not `num_classes` different names, `thresholds` not
            as many numbers, `pooling_mode` is unknown, or the preprocessor does not
            fit the backbone.

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
        pooling_mode: str = "cls",
        early_exit: bool = False,
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
        self.pooling_mode = check_pooling_mode(pooling_mode)
        self.early_exit = early_exit
        if early_exit:
            check_can_exit(self)

        # === Functional Model ===
        pooled = self.output_dropout(pool_text(backbone, pooling_mode))
        outputs = self.output_dense(pooled)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        found = checkpoint.num_classes("classifier")
        named = len(arguments.get("labels") or ())
        wanted = arguments.get("num_classes") or named or found
        if not wanted:
            raise AlbertError(
                f"{checkpoint.path} has no classification head. Give `num_classes=` "
                "or `labels=` to begin with a new one."
            )
        if wanted == found:
            config = checkpoint.head_config("classifier")
            return {**config, **arguments, "num_classes": found}, []
        if found:
            warn_of_new_head(checkpoint, "classifier", wanted)
        return {**arguments, "num_classes": wanted}, ["classifier"]

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
            "pooling_mode": self.pooling_mode,
            "early_exit": self.early_exit,
        }
