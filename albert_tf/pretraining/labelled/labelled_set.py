"""Labelled texts of one source, and the heads that learn them."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.pretraining.records.shard_files import TARGETS
from albert_tf_lite.errors import AlbertError

# By name `task`, `pairs`, `labels` and, depending on the task, `tags` or `variance`.
Heads = dict[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class LabelledSet:
    """Labelled texts of one source, and the head that learns them.

    Args:
        name: string, that of the set.
        head: string, that of the head. Several sets may share a head.
        task: string: `"text-classification"`, `"regression"`, `"token-classification"`
            or `"question-answering"`.
        x: list of strings, or the tuple of two such lists.
        y: the label of each text in the form of the task, as `fit` takes it.
        labels: optional list of strings, the classes (or the labels of spans) that the
            set distinguishes. By default it distinguishes all of its head. The classes
            of a head are those of its sets.
        balanced: bool. Draw each class of a `"text-classification"` equally often, and
            the set as if each class were as rare as the rarest.

    Raises:
        AlbertError: if the task is another one, the name of the head is not allowed, or
            fewer than two classes are given.

    Example:
    ```python
    albert_tf.pretraining.LabelledSet(
        "shops", "similarity", "regression", (["很好"], ["不错"]), [4.5]
    )
    ```
    """

    name: str
    head: str
    task: str
    x: Any
    y: Any
    labels: Sequence[str] | None = None
    balanced: bool = False

    def __post_init__(self) -> None:
        if self.task not in TARGETS:
            raise AlbertError(
                f"{self.name}: unknown task {self.task!r}. Known: {list(TARGETS)}"
            )
        if "/" in self.head or not self.head:
            raise AlbertError(
                f"{self.name}: the name of a head must have no slash and not be empty. "
                f"Received: {self.head!r}"
            )
        is_classified = self.task == "text-classification"
        if is_classified and self.labels is not None and len(self.labels) < 2:
            raise AlbertError(
                f"{self.name} must distinguish at least two classes. Received: "
                f"{list(self.labels)}"
            )

    @property
    def pairs(self) -> bool:
        """True if an example is a pair of texts."""
        return isinstance(self.x, tuple) and len(self.x) == 2

    @functools.cached_property
    def names(self) -> list:
        """The classes of the texts, or the labels of their spans."""
        from albert_tf.data.labels.class_matching import class_names

        if self.labels is not None:
            return list(self.labels)
        if self.task == "text-classification":
            return class_names(self.y)
        if self.task == "token-classification":
            return class_names({label for spans in self.y for *_, label in spans})
        return []


def find_heads(sets: Sequence[LabelledSet]) -> Heads:
    """Return the heads of labelled sets, in their order.

    Returns:
        By name a dict of `task`, `pairs` (true if it reads pairs), `labels` (none for
        scores and spans), for `"token-classification"` also `tags`, the names of its
        outputs, and for `"regression"` the `variance` of its scores.
    """
    if not sets:
        raise AlbertError("There are no labelled sets.")
    heads: Heads = {}
    for data in sets:
        new_head = {"task": data.task, "pairs": data.pairs, "labels": {}}
        head = heads.setdefault(data.head, new_head)
        if (head["task"], head["pairs"]) != (data.task, data.pairs):
            raise AlbertError(
                f"{data.name} is for {data.task} of {_kind(data.pairs)}, but another "
                f"set of the head {data.head!r} for {head['task']} of "
                f"{_kind(head['pairs'])}. Give it another head."
            )
        # The keys of a dict, which keep their order.
        head["labels"].update(dict.fromkeys(str(name) for name in data.names))
    for name, head in heads.items():
        head["labels"] = list(head["labels"])
        _complete_head(name, head, [data for data in sets if data.head == name])
    return heads


def _complete_head(
    name: str, head: dict[str, Any], sets: Sequence[LabelledSet]
) -> None:
    """Add what a task needs beside the labels; raise if it cannot be learned."""
    from albert_tf.data.labels.tags import tag_names

    if head["task"] == "text-classification" and len(head["labels"]) < 2:
        raise AlbertError(
            f"The head {name!r} needs at least two classes. Received: {head['labels']}"
        )
    if head["task"] == "token-classification":
        head["tags"] = tag_names(head["labels"])
    if head["task"] == "regression":
        scores = np.concatenate([np.asarray(data.y, float) for data in sets])
        # Scores that are all equal teach nothing.
        head["variance"] = max(float(scores.var()), 1e-6)


def _kind(pairs: bool) -> str:
    return "pairs" if pairs else "texts"
