import os
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, head_dropout
from albert_tf.checkpoints import Checkpoint, open_checkpoint
from albert_tf.layers.arguments import argument_names
from albert_tf.layers.tensor_types import Tensor
from albert_tf.models.pooling import default_pooling, pool_layers, pool_text
from albert_tf.models.task import AlbertTask
from albert_tf.models.temperature import check_temperature
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.trainers.examples import Column
from albert_tf.trainers.head_choice import (
    other_heads,
    warn_of_new_head,
    warn_of_unnamed_outputs,
)
from albert_tf.trainers.keras_metrics import is_of_keras
from albert_tf.trainers.labels import (
    check_class_names,
    class_ids,
    class_order,
    dataset_targets,
)
from albert_tf.trainers.prediction import Outputs
from albert_tf_lite.answers import ANSWERS
from albert_tf_lite.errors import AlbertError, listed

# The problem type of a multi-label classifier in the config of a checkpoint.
MULTI_LABEL = "multi_label_classification"


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifier(AlbertTask, keras_hub.models.TextClassifier):
    """ALBERT with a classification head: one class per text or pair of texts.

    `fit`, `evaluate` and `predict` take strings. The class of a text is a value of
    `labels`, found by equality as in scikit-learn, or its name as a string. Numbers are
    class ids if `labels` are strings, and an error if these spell other numbers.

    Args:
        backbone: an `AlbertBackbone`.
        num_classes: int.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the
            inputs are ids already.
        activation: optional string or callable for the output, such as
            `"softmax"`. By default the model returns logits.
        dropout: float. Rate before the head, apart from the encoder's own.
        labels: optional list (also an array, a Series or an Index) of `num_classes`
            strings or numbers, the classes in the order of the outputs.
        pairs: bool. An example is a pair of texts; `fit` sets it.
        pooling_mode: optional string. `"cls"`, the pooled output of the backbone, as
            the releases were fine-tuned, or `"mean"` of the tokens' last hidden states
            (or `"max"`, `"first_last_mean"`), which needs fewer examples in small
            models. By default that of the backbone's `fine_tuning`, else `"cls"`.
        temperature: float. Divides the logits before the softmax, so that the
            probabilities of new texts are neither too high nor too low; see
            `tune_temperature`. The logits that the model returns are not divided.
        compile: bool. Compile with the defaults.

    Returns:
        Logits, or the result of `activation`, [batch, num_classes].

    Raises:
        AlbertError: if `labels` are not `num_classes` different names, `pooling_mode`
            is unknown, `temperature` is not a positive number or not 1 beside an
            `activation`, or the preprocessor does not fit the backbone. By `fit` and
            `evaluate`, if a label is missing, is no class, or has two readings.

    Example:
    ```python
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "albert_micro_zh", num_classes=2
    )
    classifier.fit(["很好", "太差了"], [1, 0])
    classifier.predict(["还不错"])
    ```

    Reference:
        google-research/albert `classifier_utils.py`, `create_model`.
    """

    name_of_task = "text-classification"
    pipeline_tag = "text-classification"
    summaries = ("classifies texts or pairs of texts", "文本或文本对分类")
    fields = ("text", "text_pair")
    optional_fields = ("text_pair",)
    preprocessor_cls = AlbertTextClassifierPreprocessor
    heads = ("classifier",)
    monitor: str | None = "accuracy"
    takes_class_weight = True
    # As in the config of a checkpoint.
    problem_type = "single_label_classification"
    # Turns logits into probabilities.
    probability_activation = staticmethod(keras.activations.softmax)

    def __init__(
        self,
        backbone: AlbertBackbone,
        num_classes: int,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        activation: Any = None,
        dropout: float = 0.1,
        labels: Any = None,
        pairs: bool = False,
        pooling_mode: str | None = None,
        temperature: float = 1.0,
        **kwargs: Any,
    ):
        if num_classes == 1 and self.targets_are == "ids":
            raise AlbertError(
                f"{type(self).__name__} needs two classes or more: it gives each text "
                "one of them. Received: num_classes=1. For two classes pass "
                "num_classes=2 or both `labels`; for a number per text, such as a "
                "score, use AlbertTextRegressor; for one label that a text may or may "
                "not have, AlbertMultiLabelClassifier."
            )
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = head_dropout(backbone, dropout)
        self.output_dense = dense_head(backbone, num_classes, "logits", activation)

        # === Config ===
        self.num_classes = num_classes
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.labels = labels
        self.pairs = pairs
        self.temperature = temperature
        self.pooling_mode = pooling_mode or default_pooling(backbone)

        # === Functional Model ===
        pooled = self.output_dropout(pool_text(backbone, self.pooling_mode))
        outputs = self.output_dense(pooled)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @property
    def labels(self) -> list[str | int | float] | None:
        """The values of the classes, in the order of the outputs, if they are known."""
        return self._labels

    @labels.setter
    def labels(self, labels: Column | None) -> None:
        self._labels = check_class_names(labels, self.num_classes)

    @property
    def temperature(self) -> float:
        """The divisor of the logits before they become probabilities."""
        return self._temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        self._temperature = check_temperature(temperature, self.gives_logits)

    def classify_states(
        self, states: list[Tensor], mask: Tensor, training: bool = False
    ) -> Tensor:
        """Return the outputs for the hidden states of the layers up to one."""
        pooled = pool_layers(self.backbone, self.pooling_mode, states, mask)
        return self.output_dense(self.output_dropout(pooled, training=training))

    # === From a checkpoint ===

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        """Return the arguments, and the head unless it is of the same classes."""
        stored = checkpoint.head_config("classifier")
        is_single = cls.problem_type == AlbertTextClassifier.problem_type
        problem_type = stored.pop("problem_type", None)
        if is_single and problem_type == MULTI_LABEL:
            raise AlbertError(
                f"{checkpoint.path} is a multi-label classifier. Load it by "
                "AlbertMultiLabelClassifier.from_checkpoint."
            )
        thresholds = stored.pop("thresholds", None)
        count = checkpoint.num_classes("classifier")
        labels = check_class_names(arguments.get("labels"))
        wanted = arguments.get("num_classes") or len(labels or ()) or count
        if not wanted:
            raise AlbertError(
                f"{checkpoint.path} has no classification head. Pass `num_classes=` "
                f"or `labels=` to start with a new one.{other_heads(checkpoint)}"
            )
        if count == wanted == 1 and is_single and labels is None:
            raise AlbertError(
                f"{checkpoint.path} has a head with one output, which has no class to "
                "choose. Name its task: regression (AlbertTextRegressor) for numbers "
                "such as scores, or multi-label (AlbertMultiLabelClassifier) for the "
                "probability of one label. To start with a new head, pass `labels=` "
                "or `num_classes=2`."
            )
        order = class_order(stored.get("labels"), labels)
        are_others = stored.get("labels") and labels and not order
        if wanted != count or are_others:
            if count:
                classes = labels if are_others else wanted
                warn_of_new_head(checkpoint, "classifier", classes)
            return {**arguments, "num_classes": wanted}, ["classifier"]
        if labels and not stored.get("labels"):
            _warn_if_renamed(checkpoint, labels)
        if thresholds and not is_single:
            order = order or range(count)
            stored["thresholds"] = [thresholds[i] for i in order]
        return {**stored, **arguments, "num_classes": count}, []

    @classmethod
    def has_heads_in(cls, checkpoint):
        stored = checkpoint.head_config("classifier").get("problem_type")
        is_kind = cls.problem_type == (stored or AlbertTextClassifier.problem_type)
        if stored is None and checkpoint.num_classes("classifier") == 1:
            # `read_heads` of a task with one class per text refuses such a head.
            is_kind = True
        return is_kind and super().has_heads_in(checkpoint)

    @classmethod
    def from_opened(cls, checkpoint, *args, **kwargs):
        model = super().from_opened(checkpoint, *args, **kwargs)
        stored = checkpoint.head_config("classifier").get("labels")
        if order := class_order(stored, model.labels):
            # The weights follow their labels.
            weights = model.output_dense.get_weights()
            model.output_dense.set_weights([x[..., order] for x in weights])
        return model

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        labels = check_class_names(kwargs.get("labels"))
        if labels and load_weights and os.path.isdir(preset):
            checkpoint = open_checkpoint(preset)
            stored = checkpoint.head_config("classifier").get("labels")
            if stored != labels and class_order(stored, labels):
                return cls.from_checkpoint(checkpoint, **kwargs)
            is_same_size = checkpoint.num_classes("classifier") == len(labels)
            # `from_checkpoint` warns of others than presets of this class.
            if not stored and is_same_size and isinstance(checkpoint.model, cls):
                _warn_if_renamed(checkpoint, labels)
        if "num_classes" in kwargs:
            # Labels, thresholds and temperature of the preset belong to its own head.
            own = {"labels", "thresholds"} & set(argument_names(cls, keras.Model))
            kwargs = {**dict.fromkeys(own), "temperature": 1.0, **kwargs}
        return super().from_preset(preset, load_weights, **kwargs)

    # === Labels in ===

    @property
    def class_names(self) -> list[str]:
        """The labels, or the numbers of the classes if they have none."""
        return list(map(str, self.labels or range(self.num_classes)))

    def _names(self, labels: Any) -> list[str]:
        """Return other names of the classes, in the order of the outputs."""
        names = check_class_names(labels, self.num_classes)
        order = class_order(self.labels, names)
        if order and order != sorted(order):
            raise AlbertError(
                f"`labels` are the classes {listed(self.class_names, 10)} in another "
                f"order: {listed(names or (), 10)}. Pass new names for the classes in "
                "their order, or none."
            )
        return self.class_names if names is None else list(map(str, names))

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=self.gives_logits)

    def default_metrics(self):
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def targets(self, x, y, packed=None):
        # Another loss may want scores, or one column per class.
        takes_ids = isinstance(self.loss, keras.losses.SparseCategoricalCrossentropy)
        classes = self.num_classes if self.has_default_loss or takes_ids else None
        ids = class_ids(x, y, classes, self.labels)
        if classes is None and is_of_keras(self.loss) and np.ndim(ids) < 2:
            raise AlbertError(
                f"The loss {self.loss.name!r} reads a column per class, but `y` are "
                'classes. Pass loss="auto", or `y` of 0 and 1 [examples, '
                f"{self.num_classes}]."
            )
        return ids

    def prepare_dataset(self, examples, fixed):
        if not self.labels:
            return examples.x
        return dataset_targets(examples.x, self.labels)

    # === Answers out ===

    @property
    def gives_logits(self) -> bool:
        """True if the outputs are logits, and not probabilities."""
        return self.activation is keras.activations.linear

    @property
    def outputs_are(self) -> str:
        return "logits" if self.gives_logits else "probabilities"

    def probabilities(self, outputs: Outputs) -> Tensor:
        """Return the probabilities [batch, num_classes] for outputs of the model.

        Logits are divided by the `temperature`.
        """
        if not self.gives_logits:
            return outputs
        return self.probability_activation(outputs / self.temperature)

    def postprocess(
        self, outputs: Outputs, labels: list[str] | None = None
    ) -> dict[str, Any]:
        """Return `label`, `label_id` and `probabilities` for outputs of the model.

        Args:
            outputs: float tensor [batch, num_classes].
            labels: optional list of other names, instead of `class_names`.
        """
        probabilities = self.probabilities(outputs)
        label_id = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        names = self._names(labels)
        label = tf.gather(tf.constant(names), label_id)
        return {"label": label, "label_id": label_id, "probabilities": probabilities}

    def answers(self, x, batch_size=None, top_k=1):
        examples = self.read_examples(x)
        outputs = self.predict(examples, batch_size, verbose=0)
        dicts = ANSWERS[self.name_of_task].dicts
        return dicts(examples.parts, outputs, self.exported_settings(), top_k)

    def exported_settings(self) -> dict[str, Any]:
        needed = self.probability_activation.__name__ if self.gives_logits else None
        return {
            "task": self.name_of_task,
            "output": "logits" if self.gives_logits else "probabilities",
            "labels": self.class_names,
            # The activation that the outputs still need.
            "activation": needed,
            "temperature": self.temperature,
        }


def _warn_if_renamed(checkpoint: Checkpoint, labels: list) -> None:
    """Warn if labels are not the numbers of the classes of a head without names."""
    numbers = list(range(len(labels)))
    unnamed = [list(map(str, numbers)), [f"LABEL_{i}" for i in numbers]]
    if list(map(str, labels)) not in unnamed:
        warn_of_unnamed_outputs(checkpoint, "classes", labels, "labels")
