"""ALBERT for Keras 3 on TensorFlow, first-class in Chinese."""

import importlib
import importlib.util

from albert_tf.quiet_import import import_tensorflow as _import_tensorflow

if importlib.util.find_spec("tensorflow"):
    _import_tensorflow()

from albert_tf import backbone, layers  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "backbone",
    "checkpoints",
    "conversion",
    "data",
    "evaluation",
    "export",
    "inspect_checkpoint",
    "layers",
    "load_checkpoint",
    "models",
    "pipeline",
    "preprocessing",
    "pretraining",
    "save_checkpoint",
    "tokenizers",
    "training",
]


def __dir__():
    return [*__all__, "__version__"]


# Layers and backbone run on every backend of Keras, also where TensorFlow is not
# installed. All else reads text or checkpoints by TensorFlow.
if importlib.util.find_spec("tensorflow"):
    from albert_tf import (
        checkpoints,
        conversion,
        data,
        evaluation,
        models,
        preprocessing,
        tokenizers,
        training,
    )
    from albert_tf.checkpoints import inspect_checkpoint, load_checkpoint
    from albert_tf.conversion import save_checkpoint
    from albert_tf.pipeline import pipeline

    # What registers no class with Keras waits until it is asked for.
    _LATER = ("export", "pretraining")

    def __getattr__(name):
        if name not in _LATER:
            raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
        return importlib.import_module(f"albert_tf.{name}")
else:

    def __getattr__(name):
        if name in __all__:
            raise ImportError(
                f"albert_tf.{name} needs TensorFlow: pip install tensorflow "
                "tensorflow-text. Without it there are albert_tf.layers and "
                "albert_tf.backbone."
            )
        raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
