"""The plan of loading: which tensors of a file fill which weight of a model.

The plan is checked as a whole before any weight changes.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import (
    ENCODER_PARTS,
    CheckpointError,
    Layout,
    Tensors,
    listed,
    numbers_of,
)


class Row(NamedTuple):
    """One weight of a model, and the tensors that hold it in a layout."""

    weight: keras.Variable
    tensors: Tensors


def parts_of(model: keras.Model) -> list[str]:
    """Return the parts of a backbone or a task of albert_tf, heads last."""
    backbone = getattr(model, "backbone", model)
    pooler = ["pooler"] if backbone.pooled_dense is not None else []
    heads = [
        part
        for part in getattr(model, "heads", ())
        if getattr(model, HEADS[part].attribute) is not None
    ]
    return [*ENCODER_PARTS, *pooler, *heads]


def plan_weights(
    layout: Layout, model: keras.Model, parts: Sequence[str] | None = None
) -> list[Row]:
    """Return a row for every weight of a model, or of some of its parts."""
    backbone = getattr(model, "backbone", model)
    objects = {
        "embedding": {(0, 0): backbone.embedding},
        "attention": backbone.attention_blocks,
        "feed_forward": backbone.feed_forward_blocks,
        "pooler": {(0, 0): backbone.pooled_dense},
    }
    for part in getattr(model, "heads", ()):
        objects[part] = {(0, 0): getattr(model, HEADS[part].attribute)}
    rows = layout.rows(
        parts_of(model) if parts is None else parts, backbone.get_config()
    )
    return [
        Row(operator.attrgetter(attribute)(objects[part][tuple(block)]), tensors)
        for (part, *block), attribute, tensors in rows
    ]


def check_plan(
    plan: list[Row],
    layout: Layout,
    shapes: dict[str, list[int]],
    path: Any,
    config: str,
) -> None:
    """Raise unless a file has exactly the tensors of a plan, in the right shapes."""
    wanted = {name for row in plan for name in row.tensors.names}
    missing, unused = sorted(wanted - set(shapes)), layout.unknown(shapes, wanted)
    problems = [f"it lacks {listed(missing)}"] if missing else []
    if unused:
        problems.append(f"it has {listed(unused)}, for which the model has no place")
    if problems:
        message = (
            f"{path} does not fit the model: {'; '.join(problems)}. Nothing was "
            f"loaded. Compare num_hidden_groups and inner_group_num of {config}, or "
            "look with `albert-tf inspect`."
        )
        if set(missing) == set(layout.names(["pooler"])):
            message += (
                " A model saved without its pooler, such as a masked language model, "
                "loads with `pooler=False`."
            )
        raise CheckpointError(message)
    differ = [
        f"{name} is {tuple(shapes[name])} and should be {shape}"
        for row in plan
        for shape in [row.tensors.shapes(row.weight.shape)]
        for name in row.tensors.names
        if tuple(shapes[name]) != shape
    ]
    if differ:
        raise CheckpointError(
            f"{path} does not have the shapes of the model (from {config}): "
            f"{listed(differ)}. Nothing was loaded."
        )


def check_tied(
    layout: Layout, names: Iterable[str], read: Callable[[str], Any], path: Any
) -> None:
    """Check that the copies of tied tensors in a file are equal."""
    for copy, original in layout.tied.items():
        if {copy, original} <= set(names) and not np.array_equal(
            numbers_of(read(copy)), numbers_of(read(original))
        ):
            raise CheckpointError(
                f"{path} has a {copy} other than its {original}. An ALBERT has one "
                "tensor for both: its masked language head was trained by other code, "
                "or the file is damaged. Nothing was loaded."
            )


@contextlib.contextmanager
def without_initializing() -> Iterator[None]:
    """Build models with zeros in place of random numbers.

    Random numbers for 222 million weights take seconds and twice their memory. They
    are still drawn on backends other than TensorFlow.
    """

    def create(next_creator, initial_value=None, **kwargs):
        if not callable(initial_value):
            return next_creator(initial_value=initial_value, **kwargs)
        # In a graph nothing is drawn: only the shape and the type are needed.
        with tf.Graph().as_default():
            drawn = initial_value()
        # Whole numbers are seeds of dropout rather than weights.
        if drawn.dtype.is_floating:
            initial_value = functools.partial(tf.zeros, drawn.shape, drawn.dtype)
        return next_creator(initial_value=initial_value, **kwargs)

    with tf.variable_creator_scope(create):
        yield
