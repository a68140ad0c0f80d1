"""Reading and writing the checkpoints ALBERT was released in.

One engine (`layout.py`, `checkpoint.py`, `saving.py`) serves every layout; a layout is
a table (`layouts/`) that is read in both directions. How tensors lie on disk is another
matter (`formats/`), and so is finding them (`sources.py`).
"""

from albert_tf.checkpoints.checkpoint import (
    Checkpoint,
    config_arguments,
    load_checkpoint,
    open_checkpoint,
)
from albert_tf.checkpoints.convert import convert_checkpoint, verify_conversion
from albert_tf.checkpoints.inspection import CheckpointReport, inspect_checkpoint
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES
from albert_tf.checkpoints.saving import save_checkpoint, to_keras_hub

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "CheckpointReport",
    "RELEASES",
    "config_arguments",
    "convert_checkpoint",
    "inspect_checkpoint",
    "load_checkpoint",
    "open_checkpoint",
    "save_checkpoint",
    "to_keras_hub",
    "verify_conversion",
]
