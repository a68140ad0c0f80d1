"""Reading and writing the checkpoints ALBERT was released in.

One engine (`layout.py`, `checkpoint.py`) serves every layout; a layout is a table
(`google.py`, `albert_zh.py`) that is read in both directions.
"""

from albert_tf.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointReport,
    config_arguments,
    inspect_checkpoint,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from albert_tf.checkpoints.layout import CheckpointError

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "CheckpointReport",
    "config_arguments",
    "inspect_checkpoint",
    "load_checkpoint",
    "open_checkpoint",
    "save_checkpoint",
]
