"""`albert-tf predict` by a file of `albert_tf.export`, without TensorFlow."""

import pathlib
import types

from albert_tf_cli.common import check_files
from albert_tf_cli.task_table import TASKS
from albert_tf_cli.task_table.row import Row
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
    """The row of the task of an exported file, and the file opened."""
    import albert_tf_lite

    model = getattr(albert_tf_lite, FORMATS[pathlib.Path(file).suffix])(file)
    return ExportedRow(**vars(TASKS[model.task])), model


class ExportedRow(Row):
    """A row whose model is an exported file: it predicts, and no more."""

    @property
    def pipeline(self):
        from albert_tf_lite.plain_answers import PLAIN_ANSWERS

        return types.SimpleNamespace(
            answers=PLAIN_ANSWERS[self.name], fields=("text", "text_pair")
        )

    def answers(self, model, x, batch_size, **options):
        model.batch_size = batch_size or model.batch_size
        return model.answers(x, **options)
