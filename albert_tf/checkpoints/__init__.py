"""Reading the checkpoints that ALBERT was released in: files to tensors.

`layouts/` has a table for each family of variable names, read in both directions.
`heads` has a row for the head of each task. `formats/` is how tensors lie on disk,
`opening` finds the files of a checkpoint, `plan` pairs weights with tensors.
"""

from albert_tf.checkpoints.checkpoint import (
    Checkpoint,
    load_checkpoint,
    open_checkpoint,
)
from albert_tf.checkpoints.config import config_arguments
from albert_tf.checkpoints.inspection import CheckpointReport, inspect_checkpoint
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES

__all__ = [
    "RELEASES",
    "Checkpoint",
    "CheckpointError",
    "CheckpointReport",
    "config_arguments",
    "inspect_checkpoint",
    "load_checkpoint",
    "open_checkpoint",
]
