"""Exported files, which answer without TensorFlow."""

import pathlib
import warnings

from albert_tf.files import find_bundled, split_head
from albert_tf_lite.errors import AlbertError, MissingPackageError
from albert_tf_lite.exported_model import ExportedModel
from albert_tf_lite.network_files import NETWORK, int8_file, open_exported

EXPORTED = (".onnx", ".tflite")


def open_network(
    path: str, task_name: str | None = None, precision: str | None = "float32"
) -> ExportedModel | None:
    """Open an exported file, or that beside a model, without importing TensorFlow.

    `precision` chooses one of the files beside a model, as in
    `albert_tf_lite.pipeline`. Return `None` if there is none that answers as the model
    does. Raise if int8 was asked for.
    """
    if pathlib.Path(path).suffix in EXPORTED:
        return open_exported(path)
    name, head = split_head(path)
    folder = find_bundled(name) or pathlib.Path(name)
    # The file of a named head has the name of the head.
    file = f"{head}.onnx" if head else NETWORK
    if precision == "int8":
        return open_exported(folder, file=file, precision=precision)
    files = [folder / file]
    if precision is None:
        files.append(int8_file(folder / file))
    if not any(x.is_file() for x in files):
        return None
    try:
        network = open_exported(folder, file=file, precision=precision)
    except MissingPackageError:
        return None
    except AlbertError as error:
        warnings.warn(f"{error} Until then, TensorFlow answers.", stacklevel=2)
        return None
    return network if task_name in (None, network.task) else None
