from __future__ import annotations

from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.pooling import check_pooling_mode, pool_text
from albert_tf.models.task import AlbertTask, warn_of_new_head
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.models.text_windows import ReadsWindows
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.labels import scores


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextRegressor(ReadsWindows, FitsTexts, AlbertTask, keras_hub.models.Task):
    """ALBERT that gives a number for a text, or for a pair: how alike the two are.

    `fit` takes a list of numbers, of any range; the loss is the squared error.
    `predict` gives one float a text, [examples].

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the
            inputs are ids already.
        dropout: float. Rate between the pooled output and the head, apart from
            the encoder's own.
        pairs: bool. Whether an example is a pair of texts; `fit` sets it.
        pooling_mode: as for `AlbertTextClassifier`.
        compile: bool. Compile with the defaults.

    Returns:
        A float tensor [batch, 1].

    Example:
    ```python
    regressor = albert_tf.models.AlbertTextRegressor.from_checkpoint("albert_tiny_zh")
    regressor.fit((["在跳舞", "在骑马"], ["跳着舞", "在睡觉"]), [5.0, 0.5])
    regressor.predict((["下雨了"], ["雨停了"]))
    ```

    Reference:
        google-research/albert `classifier_utils.py`, `create_model` for STS-B.
    """

    preprocessor_cls = AlbertTextClassifierPreprocessor
    heads = ("regressor",)

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        pairs: bool = False,
        pooling_mode: str = "cls",
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=backbone.compute_dtype, name="output_dropout"
        )
        self.output_dense = self.dense_head(1, "score")

        # === Config ===
        self.dropout = dropout
        self.pairs = pairs
        self.pooling_mode = check_pooling_mode(pooling_mode)

        # === Functional Model ===
        pooled = self.output_dropout(pool_text(backbone, pooling_mode))
        outputs = self.output_dense(pooled)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        names = checkpoint.layout.names
        for head in ("regressor", "classifier"):
            # transformers takes a classifier of one output for a regressor.
            if checkpoint.num_classes(head) and names([head]) == names(cls.heads):
                if checkpoint.num_classes(head) == 1:
                    config = checkpoint.head_config(head)
                    kept = {x: config[x] for x in ("dropout", "pooling_mode")}
                    return {**kept, **arguments}, []
                warn_of_new_head(checkpoint, head, 1)
        return arguments, ["regressor"]

    def default_loss(self):
        return keras.losses.MeanSquaredError()

    def default_metrics(self):
        return {"metrics": [keras.metrics.MeanAbsoluteError(name="mae")]}

    def targets(self, x, y):
        return scores(x, y)

    def fit(self, x=None, y=None, *args, **kwargs):
        """As `FitsTexts.fit`; a new head starts from the mean of `y`."""
        if y is not None and not np.any(self.output_dense.bias):
            # Small steps from 0 would learn little else than the mean at first.
            self.output_dense.bias.assign([np.mean(self.targets(x, y))])
        return super().fit(x, y, *args, **kwargs)

    def predict(self, x=None, batch_size=None, **kwargs):
        outputs = super().predict(x, batch_size, **kwargs)
        return np.reshape(outputs, [-1])

    def answers(self, outputs: Any) -> dict[str, Any]:
        """`score` [batch], the numbers."""
        return {"score": tf.reshape(outputs, [-1])}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "pairs": self.pairs,
            "pooling_mode": self.pooling_mode,
        }
