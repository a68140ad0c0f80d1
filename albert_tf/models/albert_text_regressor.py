from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, head_dropout
from albert_tf.checkpoints.heads import HEADS
from albert_tf.models.pooling import default_pooling, pool_text
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.trainers.head_choice import warn_of_new_head
from albert_tf.trainers.labels import scores
from albert_tf.trainers.prediction import Outputs
from albert_tf_lite.answers import score_dicts
from albert_tf_lite.errors import AlbertError

# Examples whose scores are compared with those of the checkpoint's head.
COMPARED = 256
# The `problem_type` in the config of a multi-label classifier.
_MULTI_LABEL = "multi_label_classification"


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextRegressor(AlbertTask, keras_hub.models.Task):
    """ALBERT with a regression head: a number per text, or the similarity of a pair.

    `fit` takes a list of numbers, of any range; the loss is the squared error.
    `predict` returns one float per text, [examples].

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the inputs
            are ids already.
        dropout: float. Rate before the head, apart from the encoder's own.
        pairs: bool. An example is a pair of texts; `fit` sets it.
        pooling_mode: optional string. `"cls"`, the pooled output of the backbone, as
            the releases were fine-tuned, or `"mean"` of the tokens' last hidden states
            (or `"max"`, `"first_last_mean"`), which needs fewer examples in small
            models. By default that of the backbone's `fine_tuning`, else `"cls"`.
        compile: bool. Compile with the defaults.

    Returns:
        A float tensor [batch, 1].

    Example:
    ```python
    regressor = albert_tf.models.AlbertTextRegressor.from_checkpoint(
        "albert_micro_zh"
    )
    regressor.fit((["在跳舞", "在骑马"], ["跳着舞", "在睡觉"]), [5.0, 0.5])
    regressor.predict((["下雨了"], ["雨停了"]))
    ```

    Reference:
        google-research/albert `classifier_utils.py`, `create_model` for STS-B.
    """

    name_of_task = "regression"
    pipeline_tag = "text-classification"
    summaries = ("scores texts or pairs of texts", "文本或文本对打分")
    fields = ("text", "text_pair")
    optional_fields = ("text_pair",)
    preprocessor_cls = AlbertTextClassifierPreprocessor
    heads = ("regressor",)
    monitor = "spearman"
    exported_output = "score"
    outputs_are = "numbers"
    targets_are = None

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        pairs: bool = False,
        pooling_mode: str | None = None,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = head_dropout(backbone, dropout)
        self.output_dense = dense_head(backbone, 1, "score")

        # === Config ===
        self.dropout = dropout
        self.pairs = pairs
        self.pooling_mode = pooling_mode or default_pooling(backbone)

        # === Functional Model ===
        pooled = self.output_dropout(pool_text(backbone, self.pooling_mode))
        outputs = self.output_dense(pooled)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def _stored_head(cls, checkpoint):
        """Return the head with the tensors of the task, whatever its outputs."""
        names = checkpoint.layout.names
        # To transformers, a classifier of one output is a regressor.
        for head in ("regressor", "classifier"):
            if checkpoint.num_classes(head) and names([head]) == names(cls.heads):
                return head
        return None

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        if head := cls._stored_head(checkpoint):
            if cls.has_heads_in(checkpoint):
                config = checkpoint.head_config(head)
                if config.get("problem_type") == _MULTI_LABEL:
                    raise AlbertError(
                        f"{checkpoint.path} is a multi-label classifier of one class, "
                        "whose output is a logit and no score. Load it by "
                        "AlbertMultiLabelClassifier.from_checkpoint."
                    )
                kept = {x: config[x] for x in HEADS["regressor"].fields}
                return {**kept, **arguments}, []
            warn_of_new_head(checkpoint, head, 1)
        return arguments, ["regressor"]

    @classmethod
    def has_heads_in(cls, checkpoint):
        return checkpoint.num_classes(cls._stored_head(checkpoint) or "") == 1

    def default_loss(self):
        return keras.losses.MeanSquaredError()

    def default_metrics(self):
        return {"metrics": [keras.metrics.MeanAbsoluteError(name="mae")]}

    def targets(self, x, y, packed=None):
        return scores(x, y)

    def is_trained_for(self, x, y):
        """Return whether the first scores are closer to `y` than their mean is.

        Otherwise the head is for another range, though its correlation may be high.
        """
        examples = self.read_examples(x, y)
        if not super().is_trained_for(x, y) or examples.kind == "dataset":
            return False
        compared = examples.take(slice(COMPARED))
        truth = self.targets(compared.x, compared.y)
        predicted = self.predict(compared, verbose=0)
        return float(np.mean((truth - predicted) ** 2)) < float(np.var(truth))

    def adapt_to(self, examples):
        """Start with the mean of the scores, unless the head is trained."""
        super().adapt_to(examples)
        if examples.y is not None and not np.any(self.output_dense.bias):
            # From 0, small steps would at first learn little but the mean.
            mean = np.mean(self.targets(examples.x, examples.y))
            self.output_dense.bias.assign([mean])

    def predictions(self, x, packed, outputs):
        return np.reshape(outputs, [-1])

    def answers(self, x, batch_size=None):
        return score_dicts(self.predict(x, batch_size, verbose=0))

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return `score` [batch], the numbers."""
        return {"score": tf.reshape(outputs, [-1])}
