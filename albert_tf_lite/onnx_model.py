from __future__ import annotations

import base64
import os
from collections.abc import Sequence

import numpy as np

from albert_tf_lite.contents import Contents, not_ours
from albert_tf_lite.exported_model import ExportedModel, existing_file
from albert_tf_lite.extra import import_extra

# How bytes stand in a file that holds strings.
PREFIX = "albert_tf/"


class OnnxModel(ExportedModel):
    """A file of `albert_tf.export.onnx`: strings in, answers out.

    It needs the package onnxruntime and NumPy. Several threads may call it.

    Args:
        path: string, the .onnx file. Settings and vocabulary are in it.
        threads: optional int, that the network runs on.
        batch_size: int, examples that the network is given at a time.
        providers: names of execution providers of ONNX Runtime.

    Raises:
        FileNotFoundError: if there is no such file.
        ImportError: if onnxruntime is not installed.
        AlbertError: if the file was not written by `albert_tf.export.onnx`.

    Example:
    ```python
    model = OnnxModel("model.onnx")
    model.predict(["房间很干净", "太差了"])["label"]
    ```
    """

    def __init__(
        self,
        path: str | os.PathLike,
        threads: int | None = None,
        batch_size: int = 32,
        providers: Sequence[str] = ("CPUExecutionProvider",),
    ):
        path = existing_file(path)
        onnxruntime = import_extra("onnxruntime")
        state = import_extra("onnxruntime.capi.onnxruntime_pybind11_state")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=list(providers)
            )
        except (state.InvalidProtobuf, state.InvalidGraph, state.InvalidArgument):
            raise not_ours(path) from None
        files = bytes_of(self._session.get_modelmeta().custom_metadata_map)
        super().__init__(Contents.of(files, path))
        self.batch_size = batch_size

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        features = {name: np.asarray(x, "int32") for name, x in features.items()}
        (output,) = self._session.run([self.settings["output"]], features)
        return output


def strings_of(files: dict[str, bytes]) -> dict[str, str]:
    """Files as the strings that an ONNX file can hold; what is no UTF-8 as base64."""
    strings = {}
    for name, content in files.items():
        try:
            strings[PREFIX + name] = content.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(content).decode()
            strings[f"{PREFIX}{name}.base64"] = encoded
    return strings


def bytes_of(strings: dict[str, str]) -> dict[str, bytes]:
    """The inverse of `strings_of`."""
    files = {}
    for name, content in strings.items():
        name = name.removeprefix(PREFIX)
        if name.endswith(".base64"):
            files[name.removesuffix(".base64")] = base64.b64decode(content)
        else:
            files[name] = content.encode()
    return files
