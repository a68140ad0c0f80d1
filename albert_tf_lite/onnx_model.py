"""Models in ONNX files."""

import hashlib
import os
import pathlib

import numpy as np

from albert_tf_lite.changes import change_check
from albert_tf_lite.errors import AlbertError, first_line, import_extra
from albert_tf_lite.exported_model import (
    SETTINGS,
    ExportedModel,
    check_network,
    onnx_checksum,
)
from albert_tf_lite.inputs import check_integer
from albert_tf_lite.onnx_metadata import read_metadata
from albert_tf_lite.packing import INPUTS
from albert_tf_lite.pointers import check_downloaded


class OnnxModel(ExportedModel):
    """Model in a file of `albert_tf.export.onnx` that answers strings.

    It needs the package onnxruntime and NumPy. Several threads may call it.

    Args:
        path: path of the .onnx file, which includes settings and vocabulary.
        threads: optional int. Threads of the network.

    Raises:
        FileNotFoundError: if the file does not exist.
        ImportError: if onnxruntime is not installed.
        AlbertError: if the file was not written by `albert_tf.export.onnx`, or its
            weights beside it are missing, damaged or those of another model.

    Example:
    ```python
    model = OnnxModel("model.onnx")
    model.predict(["房间很干净", "太差了"])["label"]
    ```
    """

    def __init__(self, path: str | os.PathLike, threads: int | None = None):
        if threads is not None:
            threads = check_integer("threads", threads)
        self.threads = threads
        onnxruntime = import_extra("onnxruntime")
        check_downloaded(path)
        self._check_unchanged = change_check(path)
        super().__init__(path, read_metadata(path).get(SETTINGS))
        check_network(path, *onnx_checksum(path))
        if weights := self.settings.get("weights"):
            file = pathlib.Path(path).parent / pathlib.Path(weights["file"]).name
            if not file.is_file():
                raise AlbertError(
                    f"{path} needs its weights in {file.name} beside it, which does "
                    "not exist. Copy both files together, under their names, or "
                    "export the model again."
                )
            self._check_unchanged()
            self._check_unchanged = change_check(path, file)
            _check_weights(path, file, weights["sha256"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        # The errors of ONNX Runtime have no common class.
        except Exception as error:
            raise AlbertError(
                f"ONNX Runtime cannot open {path}: {first_line(error)}. If "
                "its weights are in another file, put that beside it. Otherwise, "
                "export the model again."
            ) from error
        # Another file may have come between the checksum and the session.
        self._check_unchanged()
        self._check_outputs()

    def _check_outputs(self) -> None:
        """Raise unless the network has the inputs and the output of the settings."""
        inputs = sorted(x.name for x in self._session.get_inputs())
        shapes = {x.name: x.shape for x in self._session.get_outputs()}
        output, units = self.settings["output"], self.settings["units"]
        if inputs != sorted(INPUTS) or [*shapes] != [output]:
            raise self._damaged(
                f"The network makes {', '.join(shapes)} of {', '.join(inputs)}."
            )
        if not shapes[output] or shapes[output][-1] != units:
            raise self._damaged(
                f"The output of the network is {shapes[output]}, not of {units} units."
            )

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        features = {name: np.asarray(x, "int32") for name, x in features.items()}
        try:
            (output,) = self._session.run([self.settings["output"]], features)
        except Exception as error:
            raise self._damaged(f"ONNX Runtime: {first_line(error)}") from error
        return output


def _check_weights(graph: str | os.PathLike, file: pathlib.Path, expected: str) -> None:
    """Raise unless a file holds the weights that a graph was exported with."""
    check_downloaded(file)
    with open(file, "rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != expected:
        raise AlbertError(
            f"{file} does not hold the weights of {graph}: its checksum is another. "
            "It was damaged, or overwritten by another training. Export the model "
            "again, or copy both files of one export."
        )
