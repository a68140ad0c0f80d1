"""What a task on texts answers: the inputs and outputs of its SavedModel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


class AnswersTexts:
    """A task whose outputs mean something to people; it supplies `answers`."""

    def answers(self, outputs: Any, **options: Any) -> dict[str, Any]:
        """What the outputs mean, as named tensors: the outputs of a SavedModel.

        Args:
            outputs: what the model gives for a batch.
            **options: of the task, as given to `albert_tf.export.saved_model`.
        """
        raise NotImplementedError

    def text_answers(
        self, texts: tuple[tf.Tensor, ...], call: Callable[[Any], Any], **options: Any
    ) -> dict[str, Any]:
        """The answers for strings: the outputs of a SavedModel that takes texts.

        Args:
            texts: the texts of each example, string tensors [batch].
            call: function of the model's inputs, gives its outputs.
            **options: as for `answers`.
        """
        return self.answers(call(self.preprocessor(texts)), **options)

    @property
    def text_specs(self) -> list[tf.TensorSpec]:
        """The inputs of a SavedModel that takes strings."""
        return [tf.TensorSpec([None], tf.string, name=x) for x in self.text_inputs]

    @property
    def text_inputs(self) -> tuple[str, ...]:
        """The names of the texts of an example: the inputs of a SavedModel."""
        return ("text", "text_b") if self.pairs else ("text",)
