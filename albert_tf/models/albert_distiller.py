from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.auto_compile import AutoCompile
from albert_tf.models.pooling import pool_states
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.preprocessing.examples import is_pair
from albert_tf_lite.errors import AlbertError

# What must be alike for the classes of one to be those of the other.
_ALIKE = ("num_classes", "multi_label", "labels")


class AlbertDistiller(FitsTexts, AutoCompile, keras.Model):
    """Trains a student to answer as a teacher does, with or without labels.

    Both are `AlbertTextClassifier`s and take strings. The teacher answers all texts
    once, before the training, so it may have another vocabulary; it is not changed.
    What is trained is the student itself, then used and saved as any classifier.
    (A student that gives numbers needs no more than `fit(x, teacher.predict(x))`.)

    The loss is Keras' `LogitsDistillation`: the Kullback-Leibler divergence of the
    softened probabilities, times the temperature squared; with labels, the mean of it
    and the student's own loss, weighted. Of a multi-label model each class is a choice
    of two. The scores are `agreement`, how often student and teacher choose the same;
    `student.evaluate(x, y)` gives those of the labels.

    Args:
        teacher: an `AlbertTextClassifier`.
        student: an `AlbertTextClassifier` of the same classes in the same order.
        temperature: float. What the logits are divided by.
        student_loss_weight: float from 0 to 1, the share of the student's own loss in
            that of texts with labels.
        hidden_state_weight: float. The weight of the mean squared difference of the
            hidden states of both, Keras' `FeatureDistillation`; 0 for none. The
            embedding and each layer of the student learn from those of the teacher at
            the same share of its depth, through a linear map, trained along, if the
            widths differ. Both must make the same tokens of a text.

    Raises:
        AlbertError: if the classes differ, or with `hidden_state_weight` the tokens do.

    Example:
    ```python
    distiller = albert_tf.models.AlbertDistiller(teacher, student)
    distiller.fit(texts, epochs=3)  # Or fit(texts, labels).
    student.save_to_preset("student")
    ```

    Reference:
        [Hinton et al., 2015](https://arxiv.org/abs/1503.02531);
        [TinyBERT](https://arxiv.org/abs/1909.10351), section 3, for the hidden states.
    """

    def __init__(
        self,
        teacher: AlbertTextClassifier,
        student: AlbertTextClassifier,
        temperature: float = 2.0,
        student_loss_weight: float = 0.5,
        hidden_state_weight: float = 0.0,
        **kwargs: Any,
    ):
        _check_classes(teacher, student)
        if not 0 <= student_loss_weight <= 1 or hidden_state_weight < 0:
            raise AlbertError(
                "`student_loss_weight` must lie between 0 and 1, `hidden_state_weight` "
                f"be 0 or more. Received: {student_loss_weight}, {hidden_state_weight}"
            )
        super().__init__(**kwargs)
        self.student = student
        self.student_loss_weight = student_loss_weight
        self.hidden_state_weight = hidden_state_weight
        self.agreement = keras.metrics.Mean(name="agreement")
        self._student_loss = student.default_loss()
        # An instance: by its name, Keras 3.15 would compare logits without softmax.
        self._logits_loss = keras.distillation.LogitsDistillation(
            temperature, loss=keras.losses.KLDivergence()
        )
        self._feature_loss = keras.distillation.FeatureDistillation(loss="mse")
        self._network = _network(student, bool(hidden_state_weight))
        # Functions, for Keras would train a teacher that it finds among the attributes.
        self._teach = lambda x: teacher.class_logits(teacher.predict(x, verbose=0))
        self._teacher_states = self._state_dense = None
        if hidden_state_weight:
            _check_tokens(teacher, student)
            network = _network(teacher, True)
            self._teacher_states = lambda x: network(x, training=False)["states"]
            if teacher.backbone.hidden_dim != student.backbone.hidden_dim:
                self._state_dense = keras.layers.Dense(
                    teacher.backbone.hidden_dim, use_bias=False, name="state_dense"
                )
                self._state_dense.build((None, student.backbone.hidden_dim))
        self.compile()

    # === As a task on texts, the student's ===

    @property
    def backbone(self):
        return self.student.backbone

    @property
    def preprocessor(self):
        return self.student.preprocessor

    @property
    def pairs(self) -> bool:
        return self.student.pairs

    @pairs.setter
    def pairs(self, pairs: bool):
        self.student.pairs = pairs

    def default_loss(self):
        """None beside `compute_loss`."""
        return None

    def targets(self, x: Any, y: Any = None) -> dict[str, Any]:
        """What the teacher says of the texts, and their labels if there are any."""
        targets = {"teacher": ops.convert_to_numpy(self._teach(x))}
        if y is not None:
            targets["labels"] = self.student.targets(x, y)
        return targets

    def dataset_targets(self, dataset):
        # Of ids, and answers beside them, are those that `fit` makes itself.
        if is_pair(dataset) is not None:
            raise TypeError(
                "AlbertDistiller takes lists of texts, which the teacher answers once. "
                "Received a tf.data.Dataset."
            )
        return dataset

    def predict(self, x: Any = None, *args: Any, **kwargs: Any) -> np.ndarray:
        """What the student gives."""
        return self.student.predict(x, *args, **kwargs)

    # === The loss ===

    def call(self, inputs, training=None):
        return self._network(inputs, training=training)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        if sample_weight is not None:
            raise AlbertError(
                "Keras' distillation takes no `sample_weight`: leave it out."
            )
        outputs = y_pred["outputs"]
        logits = self.student.class_logits(outputs)
        same = ops.argmax(logits, axis=-1) == ops.argmax(y["teacher"], axis=-1)
        self.agreement.update_state(ops.cast(same, "float32"))
        loss = self._logits_loss.compute_loss(y["teacher"], logits)
        if "labels" in y:
            share = self.student_loss_weight
            student_loss = self._student_loss(y["labels"], outputs)
            loss = (1 - share) * loss + share * student_loss
        if self.hidden_state_weight:
            states = self._state_loss(x, y_pred["states"])
            loss += self.hidden_state_weight * states
        return loss

    def _state_loss(self, x, states):
        """The mean over all layers, of tokens that are no padding."""
        is_token = x["padding_mask"] > 0
        taught = self._teacher_states(x)
        share = (len(taught) - 1) / (len(states) - 1)
        losses = []
        for layer, state in enumerate(states):
            if self._state_dense is not None:
                state = self._state_dense(state)
            given = taught[round(layer * share)], state
            given = [tf.boolean_mask(ops.cast(s, "float32"), is_token) for s in given]
            losses.append(self._feature_loss.compute_loss(*given))
        return sum(losses) / len(losses)


def _network(classifier, with_states):
    """A classifier as a model that gives its hidden states beside its outputs."""
    if not with_states:
        return keras.Model(classifier.input, {"outputs": classifier.output})
    backbone, mode = classifier.backbone, classifier.pooling_mode
    given = backbone.with_intermediates().output
    states = given["hidden_states"]
    if mode == "cls":
        pooled = given["pooled_output"]
    else:
        pooled = pool_states(backbone, mode, states)
    outputs = classifier.output_dense(classifier.output_dropout(pooled))
    return keras.Model(classifier.input, {"outputs": outputs, "states": states})


def _check_classes(teacher, student):
    for role, model in (("teacher", teacher), ("student", student)):
        if not isinstance(model, AlbertTextClassifier) or model.preprocessor is None:
            raise AlbertError(
                f"The {role} must be an AlbertTextClassifier that takes strings. "
                f"Received: {model}"
            )
    for name in _ALIKE:
        first, second = (getattr(model, name) for model in (teacher, student))
        unnamed = name == "labels" and None in (first, second)
        if first != second and not unnamed:
            raise AlbertError(
                f"Teacher and student must have the same `{name}`. "
                f"Received: {first} and {second}"
            )
    if {id(x) for x in teacher.weights} & {id(x) for x in student.weights}:
        raise AlbertError("Teacher and student share weights: build them apart.")


def _check_tokens(teacher, student):
    tokenizers = [model.preprocessor.tokenizer for model in (teacher, student)]
    first, second = (tokenizer.fingerprint for tokenizer in tokenizers)
    if first != second:
        raise AlbertError(
            "`hidden_state_weight` compares token by token, but teacher and student "
            "have different vocabularies or tokenizers. Leave it out: the teacher's "
            "answers need no common tokens."
        )
    positions = teacher.backbone.max_sequence_length
    if student.preprocessor.sequence_length > positions:
        raise AlbertError(
            f"The teacher has {positions} positions, the student's texts have up to "
            f"{student.preprocessor.sequence_length} tokens: give the student's "
            f"preprocessor sequence_length={positions}."
        )
