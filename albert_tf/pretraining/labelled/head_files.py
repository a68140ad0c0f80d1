"""The heads of the labelled stage in two files, and as tasks."""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from albert_tf.files import complete_directory, read_json, write_json
from albert_tf.pretraining.labelled.labelled_set import Heads
from albert_tf.pretraining.records.shard_files import TARGETS
from albert_tf.pretraining.training.network import read_arrays
from albert_tf_lite.errors import AlbertError, first_line

# The weights, and what they are.
WEIGHTS, DESCRIPTIONS = "heads.npz", "heads.json"
PARTS = ("kernel", "bias")
# The fields of a head that are arguments of its task.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "classes": ("labels", "pairs", "pooling_mode"),
    "scores": ("pairs", "pooling_mode"),
    "tags": ("tags",),
    "spans": (),
}


def write_heads(
    heads: Heads, layers: dict[str, keras.layers.Dense], folder: str | os.PathLike
) -> None:
    """Write heads: their weights to `heads.npz`, what they are to `heads.json`.

    Args:
        heads: dict, those of `LabelledRecords`.
        layers: dict by name of their dense layers.
        folder: string, the directory of the weights of the network.
    """
    arrays = {}
    for name, layer in layers.items():
        for part in PARTS:
            variable = getattr(layer, part)
            arrays[f"{name}/{part}"] = keras.ops.convert_to_numpy(variable)
    described = {name: _with_pooling(head) for name, head in heads.items()}
    with complete_directory(folder) as new:
        write_json(new / DESCRIPTIONS, described)
        with open(new / WEIGHTS, "wb") as file:
            np.savez_compressed(file, **arrays)


def _with_pooling(head: dict[str, Any]) -> dict[str, Any]:
    """Return a head with the pooling of classifiers and regressors."""
    if TARGETS[head["task"]] in ("classes", "scores"):
        return {**head, "pooling_mode": "mean"}
    return head


def read_heads(folder: str | os.PathLike) -> dict[str, dict[str, Any]]:
    """Return the heads in a directory of `write_heads`.

    Args:
        folder: string, the directory.

    Returns:
        By name a dict as in the manifest (`task`, `pairs`, `labels`, `tags`) with the
        `pooling_mode` of a head of texts, and the arrays `kernel` [hidden_dim, outputs]
        and `bias` [outputs].

    Raises:
        AlbertError: if both files do not belong together.
    """
    folder = pathlib.Path(folder)
    file = folder / DESCRIPTIONS
    heads = read_json(file, dict)
    arrays = read_arrays(folder / WEIGHTS)
    needed = {f"{name}/{part}" for name in heads for part in PARTS}
    if differ := needed ^ arrays.keys():
        raise AlbertError(
            f"{folder / WEIGHTS} and heads.json differ in {sorted(differ)[:3]}. "
            "Copy both files of one training."
        )
    with _naming_damage(file):
        for name, head in heads.items():
            # Raises for a task that has no head of this kind.
            _ARGUMENTS[TARGETS[head["task"]]]
            for part in PARTS:
                head[part] = arrays[f"{name}/{part}"]
    return heads


@contextlib.contextmanager
def _naming_damage(file: pathlib.Path) -> Iterator[None]:
    """Name the file in errors about heads that lack a field or have another one."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise AlbertError(
            f"{file} is damaged: {type(error).__name__}, {first_line(error)}. Copy it "
            "again."
        ) from error


def build_heads(
    backbone: keras.Model, folder: str | os.PathLike
) -> dict[str, keras.Model]:
    """Build the task of each head that `pretrain_labelled` wrote. Needs TensorFlow.

    Args:
        backbone: the `AlbertBackbone` of the trained network, which the tasks share.
        folder: string, the directory of the heads.

    Returns:
        The tasks by name, such as `save_checkpoint` takes as `heads`.

    Raises:
        AlbertError: if both files of the heads do not belong together.
    """
    heads = read_heads(folder)
    with _naming_damage(pathlib.Path(folder, DESCRIPTIONS)):
        return {name: _build_task(backbone, head) for name, head in heads.items()}


def _build_task(backbone: keras.Model, head: dict[str, Any]) -> keras.Model:
    # Here, because the rest of this module needs no TensorFlow.
    from albert_tf.checkpoints.heads import HEADS
    from albert_tf.models import TASKS

    task_class = TASKS[head["task"]]
    names = _ARGUMENTS[TARGETS[head["task"]]]
    arguments = {name: head[name] for name in names}
    if "labels" in arguments:
        arguments["num_classes"] = len(arguments["labels"])
    task = task_class(backbone, compile=False, **arguments)
    layer = getattr(task, HEADS[task_class.heads[0]].attribute)
    for part in PARTS:
        getattr(layer, part).assign(head[part])
    return task
