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
    "data",
    "evaluation",
    "export",
    "inspect_checkpoint",
    "layers",
    "load_checkpoint",
    "models",
    "pipeline",
    "pipelines",
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
        data,
        evaluation,
        models,
        preprocessing,
        tokenizers,
        training,
    )
    from albert_tf.checkpoints import (
        inspect_checkpoint,
        load_checkpoint,
        save_checkpoint,
    )

    # What registers no class with Keras waits until it is asked for.
    _LATER = {name: name for name in ("export", "pipelines", "pretraining")}
    _LATER["pipeline"] = "pipelines"

    def __getattr__(name):
        if name not in _LATER:
            raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
        module = importlib.import_module(f"albert_tf.{_LATER[name]}")
        value = module.pipeline if name == "pipeline" else module
        globals()[name] = value
        return value
else:

    def __getattr__(name):
        if name in __all__:
            raise ImportError(
                f"albert_tf.{name} needs TensorFlow: pip install tensorflow "
                "tensorflow-text. Without it there are albert_tf.layers and "
                "albert_tf.backbone."
            )
        raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
