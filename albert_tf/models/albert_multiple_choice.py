from __future__ import annotations

import warnings
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.layers.choices import NO_CHOICE, FlattenChoices, UnflattenScores
from albert_tf.models.task import AlbertTask
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.preprocessing.examples import check_class_ids
from albert_tf.preprocessing.multiple_choice_preprocessor import (
    AlbertMultipleChoicePreprocessor,
    ragged_choices,
)
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultipleChoice(FitsTexts, AlbertTask, keras_hub.models.Task):
    """ALBERT that chooses between answers to a question on a text.

    Each choice is read with its context and its question, and gets one score. `fit`,
    `evaluate` and `predict` take `(contexts, questions, choices)`; the questions may
    have different numbers of choices.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertMultipleChoicePreprocessor`, or `None` if the inputs
            are ids already, [batch, choices, time].
        dropout: float. Rate between the pooled output and the head, apart from
            the encoder's own.
        compile: bool. Compile with the defaults.

    Returns:
        Logits [batch, choices], -1e9 where an example has fewer choices than others.
        `predict` gives -inf there: `argmax` and softmax of a row are right.

    Example:
    ```python
    model = albert_tf.models.AlbertMultipleChoice.from_checkpoint("albert_tiny_zh")
    x = ["男：几点了？女：八点。"], ["现在几点？"], [["七点", "八点", "九点"]]
    model.fit(x, [1])
    model.predict(x).argmax(-1)
    ```

    Reference:
        google-research/albert `race_utils.py`, `create_model`; transformers
        `AlbertForMultipleChoice`.
    """

    preprocessor_cls = AlbertMultipleChoicePreprocessor
    heads = ("choice_head",)
    text_inputs = ("context", "question", "choices")

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertMultipleChoicePreprocessor | None = None,
        dropout: float = 0.1,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=backbone.compute_dtype, name="output_dropout"
        )
        self.score_dense = self.dense_head(1, "score")

        # === Config ===
        self.dropout = dropout

        # === Functional Model ===
        inputs = {
            name: keras.Input((None, None), dtype="int32", name=name)
            for name in backbone.input
        }
        flatten = FlattenChoices(name="flatten_choices")
        pooled = backbone.pool({name: flatten(x) for name, x in inputs.items()})
        scores = self.score_dense(self.output_dropout(pooled))
        unflatten = UnflattenScores(dtype=self.head_dtype, name="unflatten_scores")
        outputs = unflatten(scores, inputs["padding_mask"])
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        if "choice_head" in checkpoint.heads:
            return arguments, []
        if checkpoint.num_classes("classifier"):
            warnings.warn(
                f"The head of {checkpoint.path} is a text classifier's, for its config "
                "does not say AlbertForMultipleChoice: the model begins with a new "
                "one, with random weights. If it is a multiple choice head, put "
                '"architectures": ["AlbertForMultipleChoice"] into the config.',
                stacklevel=4,
            )
        return arguments, ["choice_head"]

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self):
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    @property
    def text_specs(self):
        *texts, _ = super().text_specs
        return [*texts, tf.TensorSpec([None, None], tf.string, name="choices")]

    def targets(self, x: Any, y: Any) -> np.ndarray:
        """The right choice of each example, an int array [examples]."""
        counts = ragged_choices(x).row_lengths().numpy()
        y = check_class_ids(x, y)
        for position, (label, count) in enumerate(zip(y, counts, strict=True)):
            if not 0 <= label < count:
                raise AlbertError(
                    f"Element {position} of `y` is {label}, but its question has "
                    f"{count} choices, counted from 0."
                )
        return y

    def predicted_mask(self, x):
        return tf.reduce_max(x["padding_mask"], axis=2)

    def _bucketed(self, x, batch_size=None):
        if isinstance(x, tf.data.Dataset):
            raise AlbertError(
                "A dataset of choices cannot be batched anew by length. Leave out "
                "`group_by_length`, or give lists, which are."
            )
        return x

    def predict(
        self, x: Any = None, batch_size: int | None = None, **kwargs: Any
    ) -> np.ndarray:
        """The logits of the choices.

        Args:
            x: the tuple `(contexts, questions, choices)`, a dataset of batches of such,
                or ids.
            batch_size: optional int, more than 32 by default where texts are short.
            **kwargs: passed on to `keras.Model.predict`.

        Returns:
            A float array [examples, choices], -inf after the choices of an example that
            has fewer than others.
        """
        rows = super().predict(x, batch_size=batch_size, **kwargs)
        logits = np.full(
            (len(rows), max(map(len, rows), default=0)), -np.inf, "float32"
        )
        for row, values in zip(logits, rows, strict=True):
            row[: len(values)] = values
        return logits

    def answers(self, outputs: Any) -> dict[str, Any]:
        """`label_id`, the choice, and `probabilities` [batch, choices].

        Of an example without any choice these are -1 and 0.
        """
        is_choice = outputs > NO_CHOICE
        # One column more, for a batch in which no example has a choice.
        padded = tf.pad(outputs, [[0, 0], [0, 1]], constant_values=NO_CHOICE)
        label_id = tf.argmax(padded, axis=-1, output_type=tf.int32)
        return {
            "label_id": tf.where(tf.reduce_any(is_choice, axis=-1), label_id, -1),
            "probabilities": tf.where(is_choice, tf.nn.softmax(outputs), 0.0),
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dropout": self.dropout}
