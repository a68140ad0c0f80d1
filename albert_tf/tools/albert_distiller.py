"""Knowledge distillation from one text classifier to another."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops

from albert_tf.models.albert_multi_label_classifier import AlbertMultiLabelClassifier
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.tools.state_distillation import StateLearner
from albert_tf.trainers.batching import BatchOptions, text_batches
from albert_tf.trainers.examples import Examples, read_examples
from albert_tf.training import (
    fine_tuning_epochs,
    fine_tuning_learning_rate,
    scheduled_optimizer,
)
from albert_tf_lite.errors import AlbertError, listed

# Probabilities [texts, classes], or what returns them for a list of texts.
Probabilities: TypeAlias = np.ndarray | Callable[[Any], np.ndarray]
# How far the probabilities of a text may be from 1 in sum: those of language models are
# often rounded to two digits.
TOLERANCE = 0.02


class AlbertDistiller:
    """Train a student to predict like its teacher, with or without labels.

    The student is a text classifier that takes strings. The teacher is another one,
    any function of texts, or an array of its probabilities, such as those of a large
    language model. It predicts all texts once, before the training, so it may have
    another vocabulary; it is not changed. The student is used and saved like any
    classifier. (For a student that predicts numbers, call `fit(x, teacher.predict(x))`
    instead.)

    The loss is Keras' `LogitsDistillation`: the Kullback-Leibler divergence of the
    softened probabilities, times the temperature squared. With labels, it is the
    weighted mean of that and the student's own loss. Each class of a multi-label model
    is a choice of two. The metric `agreement` is the share of equal choices of student
    and teacher; `student.evaluate(x, y)` scores the labels.

    Args:
        teacher: an `AlbertTextClassifier` or `AlbertMultiLabelClassifier`; a function
            of a list of texts (for pairs of the tuple of two lists) that returns
            probabilities [texts, classes]; or such an array, for the texts of `fit`.
        student: a classifier, of the kind of the teacher, and with the same classes in
            the same order if that is a model.
        temperature: float. The divisor of the logits.
        student_loss_weight: float from 0 to 1, the share of the student's own loss for
            texts with labels.
        labels: list of the student's classes in the order of the columns, for a teacher
            of probabilities. Optional if the student has no `labels`.

    Raises:
        AlbertError: if the classes differ, or the models share weights.

    Example:
    ```python
    distiller = albert_tf.tools.AlbertDistiller(teacher, student)
    distiller.fit(texts, epochs=3)  # Or fit(texts, labels).
    student.save_to_preset("student")

    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.9]])
    distiller = albert_tf.tools.AlbertDistiller(
        probabilities, student, labels=student.class_names
    )
    distiller.fit(texts, epochs=3)
    ```

    Reference:
        [Hinton et al., 2015](https://arxiv.org/abs/1503.02531); `fit_hidden_states`:
        [TinyBERT](https://arxiv.org/abs/1909.10351).
    """

    def __init__(
        self,
        teacher: AlbertTextClassifier | Probabilities,
        student: AlbertTextClassifier,
        temperature: float = 2.0,
        student_loss_weight: float = 0.5,
        *,
        labels: Iterable[Any] | None = None,
    ):
        self._columns: list[int] = []
        if isinstance(teacher, keras.Model):
            _check_alike(teacher, student)
        else:
            self._columns = _column_of_class(student, labels)
        self.teacher = teacher
        self.student = student
        self.temperature = temperature
        self.student_loss_weight = student_loss_weight
        self._options: dict[str, Any] = {}

    def compile(self, **options: Any) -> None:
        """Set options of the student's `compile`, such as `learning_rate`."""
        self._options = options

    def fit(
        self,
        x: Iterable[str] | tuple[Iterable[str], Iterable[str]],
        y: Iterable[Any] | None = None,
        batch_size: int | None = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
        shuffle: bool = True,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Train the student, then compile it with its defaults.

        Args:
            x: list of strings, or for pairs the tuple of two such lists.
            y: optional labels: class ids or names, or lists of them for a multi-label
                student.
            batch_size: optional int. Examples per batch, 32 by default.
            shuffle: bool. Draw a random order for each epoch.
            max_tokens: optional int. Tokens per batch, padding included, instead of
                `batch_size`.
            validation_data: optional tuple `(x, y)`; `y` is `None` for training
                without labels. Not for a teacher that is an array.
            **kwargs: passed to the student's `fit`, such as `epochs`.

        Returns:
            A `keras.callbacks.History`.

        Raises:
            TypeError: if `x` is not lists of texts.
            AlbertError: if the probabilities of the teacher are not one row per text
                and one column per class, or are none.
        """
        options = BatchOptions(batch_size, max_tokens).with_batch_size()
        examples = read_examples(x, y)
        train = self._batches(examples, dataclasses.replace(options, shuffle=shuffle))
        if validation_data is not None:
            if not callable(self.teacher):
                raise AlbertError(
                    "The teacher is an array of probabilities for `x`, and has none "
                    "for `validation_data`. Pass a function of texts as the teacher, "
                    "or leave out `validation_data` and call student.evaluate(x, y)."
                )
            dev = read_examples(*validation_data)
            validation_data = self._batches(dev, options)
        student = self.student
        student.adapt_to(examples)
        metric = keras.metrics.MeanMetricWrapper(self._agreement(), name="agreement")
        loss = self._loss(has_labels=examples.y is not None)
        student.compile(loss=loss, metrics=[metric], **self._options)
        try:
            return student.fit(train, validation_data=validation_data, **kwargs)
        finally:
            student.compile()

    def fit_hidden_states(
        self,
        x: Iterable[str] | tuple[Iterable[str], Iterable[str]],
        batch_size: int | None = None,
        epochs: int | None = None,
        *,
        learning_rate: float | None = None,
        attention_scores: bool = False,
        shuffle: bool = True,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Train the student's layers to have the hidden states of the teacher's.

        It is the first stage of TinyBERT, before `fit`, and trains the backbone of the
        student only. The student has fewer layers or narrower ones. Each of its layers
        learns from one layer of the teacher, spread evenly, through a dense layer that
        is trained with it. The teacher computes its states in every step.

        Args:
            x: list of strings, or for pairs the tuple of two such lists.
            batch_size: optional int. Examples per batch, 32 by default.
            epochs: optional int. By default 3, and up to 30 for fewer than 1,500 texts.
            learning_rate: optional float, the peak. By default that of fine-tuning a
                model of the student's width.
            attention_scores: bool. Each layer learns the attention probabilities, too.
                Both models need equally many heads.
            shuffle: bool. Draw a random order for each epoch.
            max_tokens: optional int. Tokens per batch, padding included, instead of
                `batch_size`.
            **kwargs: passed to `keras.Model.fit`, such as `verbose`.

        Returns:
            A `keras.callbacks.History` of the loss: the squared errors of all states
            over the squares of the teacher's, in sum.

        Raises:
            AlbertError: if the teacher is not a model, or reads other ids than the
                student.
        """
        teacher: Any = self.teacher
        student = self.student
        _check_same_ids(teacher, student)
        examples = read_examples(x)
        student.adapt_to(examples)
        options = BatchOptions(batch_size, max_tokens, shuffle).with_batch_size()
        packed = student.preprocessor.pack_texts(examples.x)
        batches = text_batches(student.preprocessor, packed, **options.sizes)
        if epochs is None:
            epochs = fine_tuning_epochs(len(packed))
        if learning_rate is None:
            learning_rate = fine_tuning_learning_rate(student.backbone.hidden_dim)
        learner = StateLearner(teacher.backbone, student.backbone, attention_scores)
        steps = batches.count * epochs
        optimizer = scheduled_optimizer("adamw", learning_rate, steps)
        learner.compile(optimizer, jit_compile=False)
        # The dataset draws the order.
        return learner.fit(batches.dataset, epochs=epochs, shuffle=False, **kwargs)

    def _teacher_logits(self, examples: Examples) -> np.ndarray:
        """Return logits of the teacher, as `_class_logits` of the student."""
        teacher: Any = self.teacher
        if isinstance(teacher, AlbertTextClassifier):
            outputs = teacher.predict(examples, verbose=0)
            return ops.convert_to_numpy(_class_logits(teacher, outputs))
        probabilities = teacher(examples.x) if callable(teacher) else teacher
        is_multi_label = isinstance(self.student, AlbertMultiLabelClassifier)
        shape = (examples.count, len(self._columns))
        probabilities = _checked_probabilities(probabilities, shape, is_multi_label)
        ordered = probabilities[:, self._columns]
        return ops.convert_to_numpy(_logits_of_probabilities(ordered, is_multi_label))

    def _batches(self, examples, options):
        """Return batches whose targets are the teacher's logits, then the labels."""
        student, x, y = self.student, examples.x, examples.y
        logits = self._teacher_logits(examples)
        targets = logits.reshape(len(logits), -1)
        if y is not None:
            labels = np.asarray(student.targets(x, y), "float32")
            labels = labels.reshape(len(labels), -1)
            targets = np.concatenate([targets, labels], axis=1)
        preprocessor = student.preprocessor
        packed = preprocessor.pack_texts(x)
        return text_batches(preprocessor, packed, targets, **options.sizes).dataset

    def _loss(self, has_labels):
        """Return the loss of the outputs for targets of `_batches`."""
        student, share = self.student, self.student_loss_weight
        student_loss = student.default_loss()
        # Given the loss by name, Keras 3.15 would compare logits without softmax.
        distillation = keras.distillation.LogitsDistillation(
            self.temperature, loss=keras.losses.KLDivergence()
        )

        def loss(y_true, y_pred):
            logits = _class_logits(student, y_pred)
            taught, labels = _split(y_true, logits)
            value = distillation.compute_loss(taught, logits)
            if not has_labels:
                return value
            return (1 - share) * value + share * student_loss(labels, y_pred)

        return loss

    def _agreement(self):
        """Return the metric, a function: Keras 3.16 writes down no bound methods."""

        def agree(y_true, y_pred):
            logits = _class_logits(self.student, y_pred)
            taught, _ = _split(y_true, logits)
            same = ops.argmax(logits, axis=-1) == ops.argmax(taught, axis=-1)
            return ops.cast(same, "float32")

        return agree


def _class_logits(model, outputs):
    """Return logits [batch, num_classes]; a last axis of 2 if it is multi-label."""
    is_multi_label = isinstance(model, AlbertMultiLabelClassifier)
    if not model.gives_logits:
        return _logits_of_probabilities(outputs, is_multi_label)
    if is_multi_label:
        return ops.stack([ops.zeros_like(outputs), outputs], axis=-1)
    return outputs


def _logits_of_probabilities(probabilities, is_multi_label):
    """Return the `_class_logits` of probabilities [batch, num_classes]."""
    if is_multi_label:
        return ops.stack([_log(1 - probabilities), _log(probabilities)], axis=-1)
    return _log(probabilities)


def _log(probabilities):
    """Return the logarithm of probabilities, of which some may be 0."""
    return ops.log(ops.maximum(probabilities, keras.config.epsilon()))


def _split(y_true, logits):
    """Return the logits of the teacher and the labels."""
    width = int(np.prod(logits.shape[1:]))
    shape = (-1, *logits.shape[1:])
    return ops.reshape(y_true[:, :width], shape), y_true[:, width:]


def _kind(model):
    """Return what a classifier of strings predicts, `None` for other models."""
    if not isinstance(model, AlbertTextClassifier) or model.preprocessor is None:
        return None
    if isinstance(model, AlbertMultiLabelClassifier):
        return "several classes"
    return "one class"


def _check_alike(teacher, student):
    """Raise unless the student can learn from the teacher."""
    if _kind(teacher) is None or _kind(teacher) != _kind(student):
        raise AlbertError(
            "Teacher and student must be text classifiers of one kind that take "
            f"strings. Received: {teacher} and {student}"
        )
    names = ["num_classes"]
    if teacher.labels and student.labels:
        names.append("class_names")
    for name in names:
        first, second = getattr(teacher, name), getattr(student, name)
        if first != second:
            raise AlbertError(
                f"Teacher and student must have the same `{name}`. "
                f"Received: {first} and {second}"
            )
    if {id(x) for x in teacher.weights} & {id(x) for x in student.weights}:
        raise AlbertError("Teacher and student share weights. Build them separately.")


# === Teachers of probabilities ===


def _column_of_class(student, labels):
    """Return the column of the teacher for each class of the student."""
    if _kind(student) is None:
        raise AlbertError(
            "The student must be a text classifier that takes strings. Received: "
            f"{student}"
        )
    classes = student.class_names
    if labels is None:
        if student.labels:
            raise AlbertError(
                "Name the classes of the teacher's columns in their order: "
                f"labels=[...]. The classes of the student are {listed(classes, 10)}."
            )
        return list(range(len(classes)))
    names = [str(label) for label in labels]
    if sorted(names) != sorted(classes):
        raise AlbertError(
            "`labels` must be the classes of the student in the order of the teacher's "
            f"columns. Received {listed(names, 10)} for the classes "
            f"{listed(classes, 10)}."
        )
    return [names.index(name) for name in classes]


def _checked_probabilities(given, shape, is_multi_label):
    """Return probabilities as a float32 array [texts, classes]; raise if they are none.

    Those of one class per text are divided by their sum.
    """
    probabilities = np.asarray(given, "float32")
    if probabilities.shape != shape:
        raise AlbertError(
            "The teacher must have a row of probabilities per text and a column per "
            f"class, {list(shape)}. Received the shape {list(probabilities.shape)}."
        )
    is_valid = (probabilities >= 0) & (probabilities <= 1)
    if not is_valid.all():
        row = np.flatnonzero(~is_valid.all(axis=1))[0]
        raise AlbertError(
            "The probabilities of the teacher must lie between 0 and 1. Those of text "
            f"{row} are {probabilities[row].tolist()}. For logits, pass their softmax, "
            "or for several labels their sigmoid."
        )
    if is_multi_label:
        return probabilities
    sums = probabilities.sum(axis=1, keepdims=True)
    wrong = np.flatnonzero(np.abs(sums[:, 0] - 1) > TOLERANCE)
    if wrong.size:
        raise AlbertError(
            "The probabilities of a text must sum to 1, because the student gives each "
            f"text one class. Those of text {wrong[0]} sum to {sums[wrong[0], 0]:.4f}."
        )
    return probabilities / sums


# === Hidden states ===


def _check_same_ids(teacher, student):
    """Raise unless the teacher is a model that reads the ids of the student."""
    if not isinstance(teacher, AlbertTextClassifier):
        raise AlbertError(
            "Hidden states need a teacher that is an AlbertTextClassifier. Received: a "
            f"{type(teacher).__name__}"
        )
    tokenizers = [model.preprocessor.tokenizer for model in (teacher, student)]
    first, second = (tokenizer.fingerprint for tokenizer in tokenizers)
    if first != second:
        raise AlbertError(
            "Hidden states belong to tokens, but teacher and student have different "
            "vocabularies or settings of their tokenizers. Build the student with "
            "those of the teacher, or call `fit` only."
        )
    length = student.preprocessor.sequence_length
    limit = teacher.backbone.max_sequence_length
    if length > limit:
        raise AlbertError(
            f"The student reads {length} tokens, but the teacher has {limit} "
            f"positions. Build the student with sequence_length={limit} or less."
        )
