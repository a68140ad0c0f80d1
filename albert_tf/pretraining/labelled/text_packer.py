"""Labelled texts to the arrays of a shard, by the tasks that learn them."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.pretraining.labelled.labelled_set import LabelledSet
from albert_tf.pretraining.records.shard_files import TARGETS, Arrays, token_dtype
from albert_tf_lite.errors import AlbertError

if TYPE_CHECKING:
    from albert_tf.models.task import AlbertTask
    from albert_tf.preprocessing.text_preprocessors import (
        AlbertTextClassifierPreprocessor,
    )


class TextPacker:
    """Pack texts and their labels. Needs TensorFlow.

    Args:
        tokenizer: that of the records.
        sequence_length: int. Maximum number of tokens per text, with special tokens.
    """

    def __init__(self, tokenizer: Any, sequence_length: int):
        from albert_tf.backbone import AlbertBackbone

        self._tokenizer, self._sequence_length = tokenizer, sequence_length
        size = tokenizer.vocabulary_size()
        self._dtype = token_dtype(size)
        # Traced once per class.
        self._preprocessor = functools.cache(self._new_preprocessor)
        # Its weights are not used.
        self._backbone = AlbertBackbone(
            size,
            num_layers=1,
            num_heads=1,
            embedding_dim=1,
            hidden_dim=1,
            intermediate_dim=1,
            max_sequence_length=sequence_length,
        )

    def pack_set(self, data: LabelledSet, head: dict[str, Any]) -> Arrays:
        """Return the arrays of a labelled set, with labels numbered in its head."""
        model = self._new_task(data)
        packed = model.preprocessor.pack_texts(data.x)
        try:
            targets = model.targets(data.x, data.y, packed)
        except AlbertError as error:
            raise AlbertError(f"{data.name}: {error}") from error
        kind = TARGETS[data.task]
        if kind == "classes":
            values = _classes(np.asarray(targets), data, head["labels"])
        elif kind == "tags":
            values = _tags(targets.values.numpy(), model.tags, head["tags"])
        elif kind == "scores":
            values = np.asarray(targets, "float32").reshape(-1)
        else:
            ends = [targets["start_logits"], targets["end_logits"]]
            values = np.stack(ends, axis=1).astype("uint16")
        return {**self._arrays(packed), kind: values}

    def pack_pairs(self, first: Sequence[str], second: Sequence[str]) -> Arrays:
        """Return the arrays of similar texts, the second of a pair after its first."""
        from albert_tf.models.task import TASKS

        if len(first) != len(second):
            raise AlbertError(
                f"The lists of similar texts differ: {len(first)}, {len(second)}."
            )
        texts: list[str] = []
        for pair in zip(first, second, strict=True):
            texts.extend(pair)
        preprocessor = self._preprocessor(TASKS["text-classification"])
        return self._arrays(preprocessor.pack_texts(texts))

    def _new_preprocessor(
        self, task: "type[AlbertTask]"
    ) -> "AlbertTextClassifierPreprocessor":
        preprocessor_class = task.preprocessor_cls
        return preprocessor_class(
            self._tokenizer, sequence_length=self._sequence_length
        )

    def _new_task(self, data: LabelledSet) -> "AlbertTask":
        """Return a task, which knows how its labels become targets."""
        from albert_tf.models.task import TASKS

        task = TASKS[data.task]
        arguments: dict[str, Any] = {"preprocessor": self._preprocessor(task)}
        if data.names:
            arguments["labels"] = data.names
        if data.task == "text-classification":
            arguments.update(num_classes=len(data.names), pairs=data.pairs)
        return task(self._backbone, **arguments)

    def _arrays(self, packed: Any) -> Arrays:
        """Return the arrays of `LABELLED_ARRAYS` of packed texts."""
        tokens = packed.tokens
        return {
            "token_ids": tokens.values.numpy().astype(self._dtype),
            "lengths": tokens.row_lengths().numpy().astype("uint16"),
            "second_starts": packed.first_lengths.numpy().astype("uint16"),
        }


def _classes(
    numbers: np.ndarray, data: LabelledSet, head_labels: list[str]
) -> np.ndarray:
    """Return numbers of classes of a set as numbers in its head."""
    numbers_in_head = [head_labels.index(str(name)) for name in data.names]
    classes = np.array(numbers_in_head, "uint16")[numbers]
    expected = len(data.labels or head_labels)
    if data.balanced and len(np.unique(classes)) < expected:
        raise AlbertError(f"{data.name} lacks a class, so that it cannot be balanced.")
    return classes


def _tags(numbers: np.ndarray, tags: Sequence[str], head_tags: list[str]) -> np.ndarray:
    """Return numbers of tags of a set, -1 for none, as numbers in its head."""
    numbers_in_head = np.array([head_tags.index(tag) for tag in tags])
    return np.where(numbers < 0, -1, numbers_in_head[numbers]).astype("int16")
