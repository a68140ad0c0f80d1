from typing import Any

import keras
import keras_hub

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, masked_lm_head
from albert_tf.models.task import AlbertTask
from albert_tf.trainers.head_choice import check_masked_lm_head, warn_of_new_head
from albert_tf.trainers.token_accuracy import TokenAccuracy
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertPretrainer(AlbertTask, keras_hub.models.Task):
    """ALBERT with its two pretraining heads: masked words and sentence order.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: `None`; the model takes ids.
        num_sop_classes: int. Classes of the sentence-order head: 2 (in order or
            swapped), or another number; 0 for a masked language model without that
            head.
        compile: bool. Compile with AdamW at 1e-4, the sum of both cross-entropies,
            and the accuracy of both heads, weighted as the losses.

    Inputs:
        The dict `AlbertBackbone` takes, and `mask_positions`, an int32 tensor
        [batch, predictions]: the positions to predict.

    Returns:
        A dict of logits: `mlm_logits` [batch, predictions, vocabulary_size] and, unless
        `num_sop_classes=0`, `sop_logits` [batch, num_sop_classes]: class 0 is in order
        and 1 swapped.

    Raises:
        AlbertError: if the backbone has no pooler, which the sentence-order head reads.

    Example:
    ```python
    pretrainer = albert_tf.models.AlbertPretrainer.from_checkpoint(
        "albert_micro_zh"
    )
    ```

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942);
        google-research/albert `run_pretraining.py`.
    """

    pipeline_tag = "fill-mask"
    summaries = ("is pretrained, to be fine-tuned", "微调，已完成预训练")
    heads = ("masked_lm_head", "sop_head")
    default_learning_rate = 1e-4

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: None = None,
        num_sop_classes: int = 2,
        **kwargs: Any,
    ):
        if num_sop_classes and backbone.pooled_dense is None:
            raise AlbertError(
                "The backbone has no pooler, which the sentence-order head reads. Pass "
                "num_sop_classes=0 for a model without that head."
            )

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm_head = masked_lm_head(backbone)
        self.num_sop_classes = num_sop_classes
        self.sop_head = None
        if num_sop_classes:
            self.sop_head = dense_head(backbone, num_sop_classes, "sop_logits")

        # === Functional Model ===
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        hidden = backbone(backbone.input)
        logits = self.masked_lm_head(hidden["sequence_output"], positions)
        outputs = {"mlm_logits": logits}
        if self.sop_head is not None:
            outputs["sop_logits"] = self.sop_head(hidden["pooled_output"])
        inputs = {**backbone.input, "mask_positions": positions}
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    def default_metrics(self):
        # Keras puts the head before the name only if there are several.
        first = next(iter(self.output))
        name = "accuracy" if len(self.output) > 1 else f"{first}_accuracy"
        return {
            "weighted_metrics": {head: TokenAccuracy(name=name) for head in self.output}
        }

    def predicted_mask(self, x):
        # Every row has the same number of predictions.
        return None

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        check_masked_lm_head(checkpoint)
        # Google's TF-Hub modules and masked language models have no such head.
        found = checkpoint.num_classes("sop_head")
        wanted = arguments.get("num_sop_classes", found)
        new_heads = ["sop_head"] if wanted not in (0, found) else []
        if new_heads:
            warn_of_new_head(checkpoint, "sop_head", wanted)
        return {**arguments, "num_sop_classes": wanted}, new_heads
