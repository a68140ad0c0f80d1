from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, head_dropout, head_dtype
from albert_tf.layers.tensor_types import Tensor
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing.task_preprocessors import (
    AlbertMultipleChoicePreprocessor,
    ragged_choices,
)
from albert_tf.trainers.examples import Column, Inputs
from albert_tf.trainers.labels import check_count
from albert_tf.trainers.prediction import Outputs
from albert_tf_lite.answers import ANSWERS
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import (
    as_texts,
    complete,
    number_of,
    single_values,
    whole_numbers,
)

# The score of a missing choice, if an example has fewer choices than others.
NO_CHOICE = -1e9


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMultipleChoice(AlbertTask, keras_hub.models.Task):
    """ALBERT that chooses between answers to a question on a text.

    Each choice is read with its context and its question, and gets one score. `fit`,
    `evaluate` and `predict` take `(contexts, questions, choices)`; the questions may
    have different numbers of choices. `y` is the position of the correct choice,
    counted from 0, or its text.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertMultipleChoicePreprocessor`, or `None` if the inputs
            are ids already, [batch, choices, time].
        dropout: float. Rate before the head, apart from the encoder's own.
        compile: bool. Compile with the defaults.

    Returns:
        Logits [batch, choices], -1e9 where an example has fewer choices than others.
        `predict` returns -inf there: `argmax` and softmax of a row are right.

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

    name_of_task = "multiple-choice"
    pipeline_tag = "multiple-choice"
    summaries = ("chooses the answer to a question", "从候选项中选出答案")
    fields = ("context", "question", "choices")
    preprocessor_cls = AlbertMultipleChoicePreprocessor
    heads = ("choice_head",)
    exported_output = "logits"
    monitor = "accuracy"

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
        self.output_dropout = head_dropout(backbone, dropout)
        self.score_dense = dense_head(backbone, 1, "score")

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
        unflatten = UnflattenScores(dtype=head_dtype(backbone), name="unflatten_scores")
        outputs = unflatten(scores, inputs["padding_mask"])
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    def default_metrics(self):
        return {"metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]}

    @property
    def text_specs(self):
        *texts, _ = super().text_specs
        return [*texts, tf.TensorSpec([None, None], tf.string, name="choices")]

    def targets(self, x: Inputs, y: Column | None, packed=None) -> np.ndarray:
        """Return the position of the correct choices, an int array [examples]."""
        return choice_positions(ragged_choices(x).to_list(), check_count(x, y))

    def predicted_mask(self, x):
        return tf.reduce_max(x["padding_mask"], axis=2)

    def predictions(self, x, packed, outputs):
        """Return logits [examples, choices], -inf after an example's last choice."""
        most = max(map(len, outputs), default=0)
        return keras.utils.pad_sequences(
            outputs, most, "float32", padding="post", value=-np.inf
        )

    def answers(self, x, batch_size=None, top_k=1):
        """Return `label`, the likeliest choice, its position `label_id`, and `score`.

        For a `top_k` other than 1, return a list of choices; `None` for all.
        """
        examples = self.read_examples(x)
        logits = self.predict(examples, batch_size, verbose=0)
        dicts = ANSWERS[self.name_of_task].dicts
        return dicts(examples.parts, logits, self.exported_settings(), top_k)

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return `label_id`, the choice, and `probabilities` [batch, choices].

        They are -1 and 0 for an example without choices.
        """
        is_choice = outputs > NO_CHOICE
        # One column more, for a batch in which no example has a choice.
        padded = tf.pad(outputs, [[0, 0], [0, 1]], constant_values=NO_CHOICE)
        label_id = tf.argmax(padded, axis=-1, output_type=tf.int32)
        return {
            "label_id": tf.where(tf.reduce_any(is_choice, axis=-1), label_id, -1),
            "probabilities": tf.where(is_choice, tf.nn.softmax(outputs), 0.0),
        }


def choice_positions(choices: list, y: list) -> np.ndarray:
    """Return the position of the correct choices, given as positions or as texts.

    Raises:
        AlbertError: if a choice does not exist, or if choices are numbers and `y` may
            be either.
    """
    lists = [as_texts(row) for row in choices]
    correct = single_values(complete(y, "y"))
    if all(isinstance(choice, str) for choice in correct):
        return _positions_of_texts(lists, correct)
    positions = whole_numbers(correct)
    for number, position in enumerate(positions):
        count = len(lists[number])
        if not 0 <= position < count:
            raise AlbertError(
                f"Element {number} of `y` is {position}, but its question has "
                f"{count} choices, counted from 0."
            )
    _check_not_named(lists, positions)
    return positions


def _positions_of_texts(lists, correct):
    """Return the position of a choice in each list."""
    positions = []
    for number, (texts, choice) in enumerate(zip(lists, correct, strict=True)):
        if choice not in texts:
            raise AlbertError(
                f"Element {number} of `y` is {choice!r}. Expected one of {texts}."
            )
        positions.append(texts.index(choice))
    return np.array(positions)


def _check_not_named(lists, positions):
    """Raise if all positions are also texts of choices, at other positions."""
    named = []
    for texts, position in zip(lists, positions, strict=True):
        numbers = [number_of(text) for text in texts]
        if position not in numbers:
            return
        named.append(numbers.index(position))
    if named != positions.tolist():
        raise AlbertError(
            f"`y` holds numbers, and all are choices, too, such as {positions[0]} of "
            f"{lists[0]}. Pass the texts of the correct choices as strings."
        )


@keras.saving.register_keras_serializable(package="albert_tf")
class FlattenChoices(keras.layers.Layer):
    """Reshape [batch, choices, time] to [batch * choices, time]."""

    def call(self, inputs: Tensor) -> Tensor:
        return ops.reshape(inputs, (-1, ops.shape(inputs)[-1]))


@keras.saving.register_keras_serializable(package="albert_tf")
class UnflattenScores(keras.layers.Layer):
    """Reshape scores [batch * choices, 1] to [batch, choices].

    A choice without any token in `padding_mask` [batch, choices, time] is missing and
    has the score -1e9.
    """

    def call(self, scores: Tensor, padding_mask: Tensor) -> Tensor:
        is_choice = ops.any(ops.cast(padding_mask, "bool"), axis=-1)
        scores = ops.reshape(scores, ops.shape(is_choice))
        return ops.where(is_choice, scores, NO_CHOICE)
