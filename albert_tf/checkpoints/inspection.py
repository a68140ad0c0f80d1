"""Saying what a checkpoint is and holds."""

import dataclasses
import math

from albert_tf.checkpoints.checkpoint import open_checkpoint
from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.weights import ENCODER_PARTS


@dataclasses.dataclass(frozen=True)
class CheckpointReport:
    """What `inspect_checkpoint` found.

    Attributes:
        path: string, the prefix of the checkpoint, or the file or folder.
        layout: string, `"google"`, `"albert_zh"`, `"huggingface"`, `"kerashub"` or
            `"keras"`.
        config: dict, the fields of the config file.
        release: string or `None`, the released checkpoint this is, by the
            checksums of its tensors.
        release_differences: list of strings, what is not as in that release.
        vocabulary: string or `None`, the path of what holds the vocabulary.
        parameters: int, numbers in the encoder (pooler included).
        heads: list of the heads that are complete, by their names in
            `heads.HEADS`.
        num_classes: int or `None`, the classes of a task's head.
        missing: list of encoder tensors the file lacks.
        damaged: list of tensors whose data are not what was written, or not finite.
        unused: list of tensors that belong to nothing known.
        optimizer_slots: list of the optimizer's tensors.
        other: list of the step counter, tied copies, heads of other tasks and
            weights around the ALBERT.
    """

    path: str
    layout: str
    config: dict
    release: str | None
    release_differences: list
    vocabulary: str | None
    parameters: int
    heads: list
    num_classes: int | None
    missing: list
    damaged: list
    unused: list
    optimizer_slots: list
    other: list


def inspect_checkpoint(path, config=None):
    """Say what a checkpoint is and holds, without building the model.

    Reads the data of every weight to see that it is whole.

    Args:
        path: what `load_checkpoint` takes.
        config: optional path, or dict of config fields.

    Returns:
        A `CheckpointReport`.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.
    """
    checkpoint = open_checkpoint(path, config=config)
    shapes, heads = checkpoint.shapes, checkpoint.heads
    release, vocabulary = checkpoint.release, checkpoint.vocabulary
    layout, arguments = checkpoint.layout, checkpoint.arguments
    backbone = layout.names((*ENCODER_PARTS, "pooler"), arguments)
    known = [*backbone, *layout.names(heads)]
    kinds = {name: layout.kind_of(name) for name in sorted(shapes)}
    return CheckpointReport(
        path=str(checkpoint.path),
        layout=layout.name,
        config=dict(checkpoint.config),
        release=release and release.name,
        release_differences=checkpoint.release_differences,
        vocabulary=vocabulary and str(vocabulary),
        parameters=sum(math.prod(shapes.get(name, [0])) for name in backbone),
        heads=heads,
        num_classes=next(
            (checkpoint.num_classes(x) for x in heads if HEADS[x].fields), None
        ),
        missing=sorted(set(backbone) - set(shapes)),
        damaged=[x for x in known if x in shapes and _is_damaged(checkpoint, x)],
        unused=checkpoint.unknown_tensors(backbone),
        optimizer_slots=[name for name in kinds if kinds[name] == "optimizer"],
        other=[
            name
            for name, kind in kinds.items()
            if name not in known and kind not in (None, "optimizer")
        ]
        + sorted(checkpoint.source.outside),
    )


def _is_damaged(checkpoint, name):
    try:
        checkpoint.read(name)
    except CheckpointError:
        return True
    return False
