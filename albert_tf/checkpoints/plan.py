"""The plan of loading: which tensors of a file fill which weight of a model.

The plan is checked as a whole before any weight changes.
"""

import contextlib
import functools
import math
import operator
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import keras
import tensorflow as tf

from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import (
    ENCODER_PARTS,
    CheckpointError,
    Layout,
    Tensors,
)
from albert_tf_lite.errors import listed

# The weights of a model, and the tensors that hold each in a layout.
Plan: TypeAlias = list[tuple[keras.Variable, Tensors]]


def parts_of(model: keras.Model) -> list[str]:
    """Return the parts of a backbone or a task of albert_tf, heads last."""
    backbone = getattr(model, "backbone", model)
    parts = list(ENCODER_PARTS)
    if backbone.pooled_dense is not None:
        parts.append("pooler")
    for part in getattr(model, "heads", ()):
        # Google's TF-Hub modules have no head for the order of sentences.
        if getattr(model, HEADS[part].attribute) is not None:
            parts.append(part)
    return parts


def plan_weights(
    layout: Layout, model: keras.Model, parts: Sequence[str] | None = None
) -> Plan:
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
    if parts is None:
        parts = parts_of(model)
    plan = []
    for place, attribute, tensors in layout.rows(parts, backbone.get_config()):
        owner = objects[place.part][place.group, place.inner]
        plan.append((operator.attrgetter(attribute)(owner), tensors))
    return plan


def check_plan(
    plan: Plan,
    layout: Layout,
    shapes: dict[str, list[int]],
    path: str | os.PathLike,
    config: str,
) -> None:
    """Raise unless a file has the tensors of a plan, in the right shapes.

    Warn of averages and of what is unlike any head or state of the original code.
    """
    wanted = {
        name: tensors.shapes(weight.shape)
        for weight, tensors in plan
        for name in tensors.names
    }
    missing = sorted(wanted.keys() - shapes)
    kinds = layout.kinds(shapes, wanted)
    unused = kinds[None]
    differ = [
        f"{name} is {tuple(shapes[name])} and should be {shape}"
        for name, shape in wanted.items()
        if name in shapes and tuple(shapes[name]) != shape
    ]
    problems = []
    if missing:
        problems.append(f"it lacks {listed(missing)}")
    if unused:
        problems.append(f"it has {listed(unused)} without a place")
    if differ:
        problems.append(listed(differ))
    if not problems:
        _warn_of_unread(kinds, path)
        return
    if set(missing) == set(layout.names(["pooler"])):
        hint = "A model that was saved without its pooler loads with `pooler=False`."
    elif missing or differ or _without_numbers(unused) <= _without_numbers(wanted):
        hint = f"Compare sizes and groups in {config}, or pass another by `config=`."
    else:
        hint = (
            "ALBERT has no such weights in its encoder: the file is of a changed "
            "architecture. If they can be left out, save the file without them."
        )
    raise CheckpointError(
        f"{path} does not fit the model: {'; '.join(problems)}. Nothing was loaded. "
        f"{hint}"
    )


def _without_numbers(names: Iterable[str]) -> set[str]:
    """Return names in which the numbers of layers and groups do not differ."""
    return {re.sub(r"\d+", "0", name) for name in names}


def _warn_of_unread(
    kinds: dict[str | None, list[str]], path: str | os.PathLike
) -> None:
    """Warn of tensors that were not loaded."""
    unread = {
        "the weights of other heads": kinds["foreign head"],
        "the state of a training": kinds["training state"],
        "moving averages of the weights": kinds["average"],
    }
    shown = [f"{kind}, {listed(names, 3)}" for kind, names in unread.items() if names]
    if shown:
        warnings.warn(
            f"{path} also has {'; '.join(shown)}. They are not loaded.", stacklevel=5
        )


@contextlib.contextmanager
def without_initializing(
    stored: float = math.inf,
    path: str | os.PathLike | None = None,
    config: str = "",
) -> Iterator[None]:
    """Build models with zeros in place of random numbers.

    Random numbers for 222 million weights take seconds and twice their memory. They
    are still drawn on backends other than TensorFlow.

    Raises if a model has many more weights than the file at `path`, which has `stored`
    numbers: a config can name any size, and memory is limited.
    """
    # Smaller models are built, for an error that names each tensor that differs.
    room = 2 * stored + 10_000_000
    # One for all weights, because creating a graph takes milliseconds.
    graph = tf.Graph()

    def create(next_creator, initial_value=None, **kwargs):
        if not callable(initial_value):
            return next_creator(initial_value=initial_value, **kwargs)
        # In a graph nothing is drawn: only the shape and the type are needed.
        with graph.as_default():
            drawn = initial_value()
        nonlocal room
        room -= math.prod(drawn.shape)
        if room < 0:
            raise CheckpointError(
                f"{path} has {stored:,} numbers, many fewer than a model of the sizes "
                f"in {config or 'its config'}. Compare them, or copy the file again."
            )
        # Whole numbers are seeds of dropout rather than weights.
        if drawn.dtype.is_floating:
            initial_value = functools.partial(tf.zeros, drawn.shape, drawn.dtype)
        return next_creator(initial_value=initial_value, **kwargs)

    with tf.variable_creator_scope(create):
        yield
