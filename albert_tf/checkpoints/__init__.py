"""Checkpoints of every form: opening, inspecting, loading, saving.

`layouts/` has a table for each family of variable names, read in both directions.
`heads` has a row for the head of each task. `formats/` reads and writes the files,
`opening` finds them, and `plan` pairs weights with tensors.
"""

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import config_arguments
from albert_tf.checkpoints.download import download_release
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.opening import (
    CheckpointReport,
    inspect_checkpoint,
    load_checkpoint,
    open_checkpoint,
)
from albert_tf.checkpoints.pruning import prune_vocabulary
from albert_tf.checkpoints.releases import RELEASES
from albert_tf.checkpoints.saving import save_checkpoint

__all__ = [
    "RELEASES",
    "Checkpoint",
    "CheckpointError",
    "CheckpointReport",
    "config_arguments",
    "download_release",
    "inspect_checkpoint",
    "load_checkpoint",
    "open_checkpoint",
    "prune_vocabulary",
    "save_checkpoint",
]
