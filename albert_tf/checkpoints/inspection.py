"""Reports of checkpoints."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from albert_tf.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointPath,
    Config,
    open_checkpoint,
)
from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import ENCODER_PARTS, CheckpointError


@dataclasses.dataclass(frozen=True)
class CheckpointReport:
    """The result of `inspect_checkpoint`."""

    path: str  # The prefix of the checkpoint, or the file or folder.
    layout: str  # "google", "albert_zh", "huggingface", "kerashub" or "keras".
    config: dict[str, Any]  # The fields of the config file.
    release: str | None  # The release with the same `.index` file.
    vocabulary: str | None  # The path of the vocabulary.
    parameters: int  # Numbers in the encoder and the pooler.
    heads: list[str]  # The complete heads, by their names in `heads.HEADS`.
    num_classes: int | None  # The classes of a task's head.
    missing: list[str]  # Encoder tensors that the file lacks.
    damaged: list[str]  # Tensors that cannot be read or are not finite.
    unused: list[str]  # Tensors that belong to nothing known.
    optimizer_slots: list[str]
    # The step counter, tied copies, heads of other tasks, weights around the ALBERT.
    other: list[str]


def inspect_checkpoint(
    path: CheckpointPath, config: Config | None = None
) -> CheckpointReport:
    """Report the contents of a checkpoint, without building the model.

    Reads the data of every weight to find damage.

    Args:
        path: see `load_checkpoint`.
        config: optional path, or dict of config fields.

    Returns:
        A `CheckpointReport`.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.

    Example:
    ```python
    report = albert_tf.inspect_checkpoint("examples/albert_micro_zh")
    report.missing, report.parameters
    ```
    """
    checkpoint = open_checkpoint(path, config=config)
    shapes, heads, layout = checkpoint.shapes, checkpoint.heads, checkpoint.layout
    backbone = layout.names((*ENCODER_PARTS, "pooler"), checkpoint.arguments)
    known = [*backbone, *layout.names(heads)]
    kinds = {name: layout.kind_of(name) for name in sorted(shapes)}
    classes = (checkpoint.num_classes(part) for part in heads if HEADS[part].fields)
    return CheckpointReport(
        path=str(checkpoint.path),
        layout=layout.name,
        config=dict(checkpoint.config),
        release=checkpoint.release.name if checkpoint.release else None,
        vocabulary=checkpoint.vocabulary and str(checkpoint.vocabulary),
        parameters=sum(math.prod(shapes.get(name, [0])) for name in backbone),
        heads=heads,
        num_classes=next(classes, None),
        missing=sorted(set(backbone) - set(shapes)),
        damaged=[x for x in known if x in shapes and _is_damaged(checkpoint, x)],
        unused=layout.unknown(shapes, backbone),
        optimizer_slots=[name for name in kinds if kinds[name] == "optimizer"],
        other=[
            name
            for name, kind in kinds.items()
            if name not in known and kind not in (None, "optimizer")
        ]
        + sorted(checkpoint.source.outside),
    )


def _is_damaged(checkpoint: Checkpoint, name: str) -> bool:
    try:
        checkpoint.read(name)
    except CheckpointError:
        return True
    return False
