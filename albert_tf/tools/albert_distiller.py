"""Knowledge distillation from one text classifier to another."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.models.albert_multi_label_classifier import AlbertMultiLabelClassifier
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.trainers.batching import size_or_default, text_batches
from albert_tf.trainers.examples import read_examples
from albert_tf_lite.errors import AlbertError


class AlbertDistiller:
    """Train a student to predict like its teacher, with or without labels.

    Both are text classifiers that take strings. The teacher predicts all texts once,
    before the training, so it may have another vocabulary; it is not changed. The
    student is used and saved like any classifier. (For a student that predicts
    numbers, call `fit(x, teacher.predict(x))` instead.)

    The loss is Keras' `LogitsDistillation`: the Kullback-Leibler divergence of the
    softened probabilities, times the temperature squared. With labels, it is the
    weighted mean of that and the student's own loss. Each class of a multi-label model
    is a choice of two. The metric `agreement` is the share of equal choices of student
    and teacher; `student.evaluate(x, y)` scores the labels.

    Args:
        teacher: an `AlbertTextClassifier` or `AlbertMultiLabelClassifier`.
        student: a model of the same kind, with the same classes in the same order.
        temperature: float. The divisor of the logits.
        student_loss_weight: float from 0 to 1, the share of the student's own loss for
            texts with labels.

    Raises:
        AlbertError: if the classes differ, or the models share weights.

    Example:
    ```python
    distiller = albert_tf.tools.AlbertDistiller(teacher, student)
    distiller.fit(texts, epochs=3)  # Or fit(texts, labels).
    student.save_to_preset("student")
    ```

    Reference:
        [Hinton et al., 2015](https://arxiv.org/abs/1503.02531).
    """

    def __init__(
        self,
        teacher: AlbertTextClassifier,
        student: AlbertTextClassifier,
        temperature: float = 2.0,
        student_loss_weight: float = 0.5,
    ):
        _check_alike(teacher, student)
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
                without labels.
            **kwargs: passed to the student's `fit`, such as `epochs`.

        Returns:
            A `keras.callbacks.History`.

        Raises:
            TypeError: if `x` is not lists of texts.
        """
        if max_tokens is None:
            batch_size = size_or_default(batch_size)
        options = {"batch_size": batch_size, "max_tokens": max_tokens}
        examples = read_examples(x, y)
        train = self._batches(examples, shuffle=shuffle, **options)
        if validation_data is not None:
            dev = read_examples(*validation_data)
            validation_data = self._batches(dev, **options)
        student = self.student
        student.adapt_to(examples)
        metric = keras.metrics.MeanMetricWrapper(self._agree, name="agreement")
        loss = self._loss(has_labels=examples.y is not None)
        student.compile(loss=loss, metrics=[metric], **self._options)
        try:
            return student.fit(train, validation_data=validation_data, **kwargs)
        finally:
            student.compile()

    def _batches(self, examples, **options):
        """Return batches whose targets are the teacher's logits, then the labels."""
        student, x, y = self.student, examples.x, examples.y
        outputs = self.teacher.predict(examples, verbose=0)
        logits = ops.convert_to_numpy(_class_logits(self.teacher, outputs))
        targets = logits.reshape(len(logits), -1)
        if y is not None:
            labels = np.asarray(student.targets(x, y), "float32")
            labels = labels.reshape(len(labels), -1)
            targets = np.concatenate([targets, labels], axis=1)
        packed = student.preprocessor.pack_texts(x)
        return text_batches(student.preprocessor, packed, targets, **options).dataset

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

    def _agree(self, y_true, y_pred):
        logits = _class_logits(self.student, y_pred)
        taught, _ = _split(y_true, logits)
        same = ops.argmax(logits, axis=-1) == ops.argmax(taught, axis=-1)
        return ops.cast(same, "float32")


def _class_logits(model, outputs):
    """Return logits [batch, num_classes]; a last axis of 2 if it is multi-label."""
    if model.gives_logits:
        positive, negative = outputs, ops.zeros_like(outputs)
    else:
        positive, negative = _log(outputs), _log(1 - outputs)
    if isinstance(model, AlbertMultiLabelClassifier):
        return ops.stack([negative, positive], axis=-1)
    return positive


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
