"""Distillation of hidden states: the layers of a student learn those of a teacher."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.layers.tensor_types import Tensor
from albert_tf_lite.errors import AlbertError


class LayerOutputs(NamedTuple):
    """Outputs of a teacher that the layers of a student learn.

    Attributes:
        states: list of tensors [batch, time, hidden_dim of the teacher]: the embedding,
            and the state after each layer of the student.
        scores: list of tensors [batch, num_heads, time, time], the attention
            probabilities of each layer of the student; empty without attention.
    """

    states: list[Tensor]
    scores: list[Tensor]


class StateLearner(keras.Model):
    """Functional model of a student's layers, which trains them to be the teacher's.

    The loss is the sum, over the embedding and the layers, of the squared errors of the
    states, and of those of the attention probabilities, without padding. Each is
    relative to the squares of the teacher; in TinyBERT, whose states have a LayerNorm,
    it is the mean. Two dense layers project the student's embedding and states to the
    width of the teacher. They are trained, too, and not needed afterwards.

    Args:
        teacher: an `AlbertBackbone`, which is not changed.
        student: an `AlbertBackbone` that reads the same ids.
        attention_scores: bool. The layers learn the attention probabilities, too.

    Reference:
        [TinyBERT](https://arxiv.org/abs/1909.10351), equations 7 to 9, whose
        attention is compared before the softmax.
    """

    def __init__(
        self,
        teacher: AlbertBackbone,
        student: AlbertBackbone,
        attention_scores: bool = False,
    ):
        if attention_scores and teacher.num_heads != student.num_heads:
            raise AlbertError(
                "`attention_scores=True` needs as many heads in the teacher as in the "
                f"student. Received: {teacher.num_heads} and {student.num_heads}"
            )
        outputs = student.with_intermediates(attention_scores).output
        embedding, *states = outputs["hidden_states"]
        width = teacher.hidden_dim
        project_embedding = keras.layers.Dense(width, name="embedding_projection")
        project_state = keras.layers.Dense(width, name="state_projection")
        projected = [project_embedding(embedding), *map(project_state, states)]
        learned = {"states": projected, "scores": outputs.get("attention_scores", [])}
        super().__init__(inputs=student.input, outputs=learned)
        # A function, because Keras would train a model that is an attribute.
        self.teach = teaching_layers(teacher, student, attention_scores)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        taught, mask = self.teach(x), x["padding_mask"]
        total = 0.0
        for target, state in zip(taught.states, y_pred["states"], strict=True):
            total += state_error(target, state, mask)
        for target, scores in zip(taught.scores, y_pred["scores"], strict=True):
            total += attention_error(target, scores, mask)
        return total


def teaching_layers(
    teacher: AlbertBackbone, student: AlbertBackbone, attention_scores: bool
) -> Callable[[dict[str, Tensor]], LayerOutputs]:
    """Return a function from ids to what the layers of a student learn."""
    model = teacher.with_intermediates(attention_scores)
    layers = teaching_layer_numbers(
        len(teacher.encoder_blocks), len(student.encoder_blocks)
    )

    def teach(features):
        outputs: Any = model(features, training=False)
        states = [outputs["hidden_states"][layer] for layer in (0, *layers)]
        scores = []
        if attention_scores:
            scores = [outputs["attention_scores"][layer - 1] for layer in layers]
        return LayerOutputs(
            [ops.stop_gradient(state) for state in states],
            [ops.stop_gradient(score) for score in scores],
        )

    return teach


def teaching_layer_numbers(teacher: int, student: int) -> list[int]:
    """Return the layer of a teacher for each layer of a student, counted from 1.

    They are spread evenly, and the last layer learns from the last one.
    """
    return [math.ceil(layer * teacher / student) for layer in range(1, student + 1)]


def state_error(taught: Tensor, learned: Tensor, mask: Tensor) -> Tensor:
    """Return the relative squared error of states [batch, time, width]."""
    is_token = ops.expand_dims(ops.cast(mask, "float32"), -1)
    return _relative_error(taught, learned, is_token)


def attention_error(taught: Tensor, learned: Tensor, mask: Tensor) -> Tensor:
    """Return the relative squared error of attention [batch, heads, time, time].

    Padding counts neither as a query nor as a key.
    """
    is_token = ops.cast(mask, "float32")
    is_pair = is_token[:, None, :, None] * is_token[:, None, None, :]
    return _relative_error(taught, learned, is_pair)


def _relative_error(taught, learned, mask):
    """Return the sum of the squared differences over that of the squares taught.

    The squares of a pre-LN model grow with its layers to hundreds, and those of
    attention probabilities are far below 1, so that sums of absolute errors would
    depend on the last states only.
    """
    taught = mask * ops.cast(taught, "float32")
    learned = mask * ops.cast(learned, "float32")
    return ops.sum(ops.square(learned - taught)) / ops.sum(ops.square(taught))
