"""`albert-tf predict` by a file of `albert_tf.export`, without TensorFlow."""

import pathlib

from albert_tf_cli.common import check_files
from albert_tf_cli.task_table import TASKS
from albert_tf_lite.errors import AlbertError

# By the end of its name, the class of `albert_tf_lite` that opens a file.
FORMATS = {".onnx": "OnnxModel", ".tflite": "LiteRTModel"}


def is_exported(model):
    """Whether a model is given as an exported file, by its name."""
    return pathlib.Path(model).suffix in FORMATS


def check_exported(file, other_option):
    """Refuse what is no file, and an option that needs the model itself."""
    if other_option:
        raise AlbertError(
            f"--task, --engine and --explain are not for an exported file, {file}."
        )
    check_files(file)


def load_exported(file):
    """Return the row of the task of an exported file, and the open file."""
    import albert_tf_lite

    model = getattr(albert_tf_lite, FORMATS[pathlib.Path(file).suffix])(file)
    return TASKS[model.task], model
