from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.trainers.labels import class_ids
from albert_tf.trainers.prediction import Outputs
from albert_tf_lite.answers import order_dicts, order_probability
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSentenceOrder(AlbertTask, keras_hub.models.Task):
    """ALBERT with its sentence-order head, which tells swapped texts from ordered ones.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the inputs
            are ids already.
        num_sop_classes: int, 2 or more; class 0 is "in order".
        compile: bool. Compile with the defaults.

    Returns:
        Logits, [batch, num_sop_classes]: class 0 = in order, 1 = swapped.

    Raises:
        AlbertError: by `from_checkpoint`, if the checkpoint has no such head.

    Example:
    ```python
    order = albert_tf.models.AlbertSentenceOrder.from_checkpoint(
        "albert_micro_zh"
    )
    order.sentence_order(["他打开了门。"], ["然后走了进去。"])  # A probability.
    ```

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942);
        google-research/albert `run_pretraining.py`, `get_sentence_order_output`.
    """

    name_of_task = "sentence-order"
    pipeline_tag = "text-classification"
    summaries = ("detects swapped sentences", "判断两个句子是否颠倒")
    fields = ("text", "text_pair")
    preprocessor_cls = AlbertTextClassifierPreprocessor
    heads = ("sop_head",)
    exported_output = "logits"
    # One text has no order.
    pairs = True

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        num_sop_classes: int = 2,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.sop_head = dense_head(backbone, num_sop_classes, "sop_logits")

        # === Config ===
        self.num_sop_classes = num_sop_classes

        # === Functional Model ===
        outputs = self.sop_head(backbone.pool(backbone.input))
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        found = checkpoint.num_classes("sop_head")
        if not found:
            raise AlbertError(
                f"{checkpoint.path} has no sentence-order head, like masked language "
                "models and Google's TF-Hub modules. Use a pretraining checkpoint, "
                "such as albert_tiny_zh."
            )
        return {"num_sop_classes": found, **arguments}, []

    def default_metrics(self):
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    def targets(self, x, y, packed=None):
        return class_ids(x, y, self.num_sop_classes)

    def adapt_to(self, examples):
        if examples.is_pair is False:
            raise AlbertError(
                "`x` must be pairs of texts: fit((first, second), labels). Received: "
                f"{type(examples.x).__name__}"
            )
        super().adapt_to(examples)

    def sentence_order(
        self, first: list[str], second: list[str], batch_size: int | None = None
    ) -> np.ndarray:
        """Return the probability that each second text follows its first.

        Args:
            first, second: lists of strings of the same length.
            batch_size: optional int, by default more than 32 for short texts.

        Returns:
            A float32 array [examples] of probabilities.
        """
        logits = self.predict((first, second), batch_size=batch_size, verbose=0)
        return order_probability(logits, {})["in_order"]

    def answers(self, x, batch_size=None):
        return order_dicts(self.sentence_order(*x, batch_size=batch_size))

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return `in_order` [batch], the probability that a pair is in order."""
        return {"in_order": tf.nn.softmax(outputs)[:, 0]}
