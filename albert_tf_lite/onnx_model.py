"""Models in ONNX files."""

import contextlib
import os

import numpy as np

from albert_tf_lite.changes import change_check
from albert_tf_lite.errors import import_extra
from albert_tf_lite.exported_model import (
    SETTINGS,
    ExportedModel,
    check_network,
    onnx_checksum,
)


class OnnxModel(ExportedModel):
    """Model in a file of `albert_tf.export.onnx` that answers strings.

    It needs the package onnxruntime and NumPy. Several threads may call it.

    Args:
        path: path of the .onnx file, which includes settings and vocabulary.
        threads: optional int. Threads of the network.

    Raises:
        FileNotFoundError: if the file does not exist.
        ImportError: if onnxruntime is not installed.
        AlbertError: if the file was not written by `albert_tf.export.onnx`.

    Example:
    ```python
    model = OnnxModel("model.onnx")
    model.predict(["房间很干净", "太差了"])["label"]
    ```
    """

    def __init__(self, path: str | os.PathLike, threads: int | None = None):
        self.threads, self._check_unchanged = threads, change_check(path)
        onnxruntime = import_extra("onnxruntime")
        state = import_extra("onnxruntime.capi.onnxruntime_pybind11_state")
        # Raises for a missing file, as ONNX Runtime does not.
        open(path, "rb").close()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        settings = None
        damage = (state.InvalidProtobuf, state.InvalidGraph, state.InvalidArgument)
        with contextlib.suppress(*damage, state.Fail, UnicodeDecodeError):
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
            settings = self._session.get_modelmeta().custom_metadata_map.get(SETTINGS)
        super().__init__(path, settings)
        check_network(path, *onnx_checksum(path))

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        features = {name: np.asarray(x, "int32") for name, x in features.items()}
        (output,) = self._session.run([self.settings["output"]], features)
        return output
