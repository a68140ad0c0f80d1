"""ALBERT for Keras 3 on TensorFlow, first-class in Chinese."""

import pathlib
import sys

__version__ = "0.1.0"

# The command line imports what a command needs, when it needs it: TensorFlow takes
# seconds, which `albert-tf --help` should not. Everybody else gets everything, for
# Keras only finds the classes of a saved model that have been imported.
if pathlib.PurePath(sys.argv[0]).stem != "albert-tf":
    from albert_tf import (
        checkpoints,
        export,
        layers,
        models,
        preprocessing,
        training,
    )
    from albert_tf.checkpoints import (
        inspect_checkpoint,
        load_checkpoint,
        save_checkpoint,
    )

__all__ = [
    "checkpoints",
    "export",
    "inspect_checkpoint",
    "layers",
    "load_checkpoint",
    "models",
    "preprocessing",
    "save_checkpoint",
    "training",
]
