"""A ready-made Chinese text model of 11 MB that runs on a CPU, and the Keras code to
fine-tune, convert and ship it.
"""

import importlib
import importlib.util
import os

__version__ = "0.1.0"

# These run on every backend of Keras, or need none; all else needs TensorFlow.
_FOLDERS = ("backbone", "data", "evaluation", "layers", "pretraining", "training")
_TENSORFLOW_FOLDERS = (
    "checkpoints",
    "export",
    "models",
    "preprocessing",
    "sklearn",
    "tokenizers",
    "tools",
)
_FUNCTIONS = {
    "AlbertError": "albert_tf_lite.errors",
    "convert_checkpoint": "albert_tf.conversion",
    "inspect_checkpoint": "albert_tf.checkpoints",
    "load_checkpoint": "albert_tf.checkpoints",
    "pipeline": "albert_tf.pipelines",
    "save_checkpoint": "albert_tf.checkpoints",
    "verify_conversion": "albert_tf.conversion",
}

__all__ = [*_FOLDERS, *_TENSORFLOW_FOLDERS, *_FUNCTIONS]


def __dir__():
    return [*__all__, "__version__"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
    if name not in (*_FOLDERS, "AlbertError") and not _HAS_TENSORFLOW:
        raise ImportError(
            f"albert_tf.{name} needs TensorFlow: pip install tensorflow, and unless on "
            f"Windows tensorflow-text. Only these run without it: "
            f"{', '.join(_FOLDERS)}."
        )
    if name in _FUNCTIONS:
        value = getattr(importlib.import_module(_FUNCTIONS[name]), name)
    else:
        value = importlib.import_module(f"albert_tf.{name}")
    globals()[name] = value
    return value


_HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
# Keras loads files of registered classes only, so the import registers them all. The
# command line sets this variable, because it reads data before it needs TensorFlow.
if not os.environ.get("ALBERT_TF_LAZY"):
    if _HAS_TENSORFLOW:
        from albert_tf.quiet_import import import_tensorflow as _import_tensorflow

        _import_tensorflow()
        from albert_tf import models, tools  # noqa: F401

        # Here, because the module of the same name would hide the function.
        from albert_tf.pipelines import pipeline  # noqa: F401
    else:
        from albert_tf import backbone  # noqa: F401
