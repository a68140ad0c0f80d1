from __future__ import annotations

import os
import threading
import zipfile

import numpy as np

from albert_tf_lite.contents import Contents, not_ours
from albert_tf_lite.exported_model import ExportedModel, existing_file
from albert_tf_lite.extra import import_extra


class LiteRTModel(ExportedModel):
    """A file of `albert_tf.export.litert`: strings in, answers out.

    It needs the package ai-edge-litert and NumPy. Several threads may call it; the
    network answers them one after the other.

    Args:
        path: string, the .tflite file. Settings and vocabulary are in it.
        threads: optional int, that the network runs on.

    Raises:
        FileNotFoundError: if there is no such file.
        ImportError: if ai-edge-litert is not installed.
        ValueError: if the file was not written by `albert_tf.export.litert`.

    Example:
    ```python
    model = LiteRTModel("model.tflite")
    model.predict(["房间很干净", "太差了"])["label"]
    ```
    """

    def __init__(self, path: str | os.PathLike, threads: int | None = None):
        path = existing_file(path)
        interpreter = import_extra("ai_edge_litert.interpreter")
        super().__init__(Contents.of(_appended_files(path), path))
        self.lengths = self.settings.get("lengths")
        if not self.lengths:
            raise not_ours(path)
        self._interpreter = interpreter.Interpreter(str(path), num_threads=threads)
        self._runners = {}
        self._lock = threading.Lock()

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        with self._lock:
            rows = [
                self._call_one(
                    {
                        name: row[np.newaxis]
                        for name, row in zip(features, example, strict=True)
                    }
                )
                for example in zip(*features.values(), strict=True)
            ]
        return np.stack(rows)

    def _call_one(self, features):
        """The output of one example, by the signature that is just long enough."""
        time = features["padding_mask"].shape[1]
        tokens = np.flatnonzero(features["padding_mask"][0])
        needed = tokens[-1] + 1 if len(tokens) else 1
        fitting = [length for length in self.lengths if length >= needed]
        if not fitting:
            raise ValueError(
                f"The example has {needed} tokens, and the file is for "
                f"{self.lengths[-1]} at most. Export it with a larger number in "
                "`lengths`."
            )
        length = fitting[0]
        runner = self._runner(length)
        padded = {name: _of_length(row, length) for name, row in features.items()}
        output = runner(**padded)[self.settings["output"]]
        return (_of_length(output, time) if output.ndim == 3 else output)[0]

    def _runner(self, length):
        if length not in self._runners:
            name = f"tokens_{length}"
            self._runners[length] = self._interpreter.get_signature_runner(name)
        return self._runners[length]


def _of_length(array, length):
    """An array [1, time, ...], cut or filled up with zeros."""
    array = array[:, :length]
    missing = length - array.shape[1]
    return np.pad(array, [(0, 0), (0, missing), *[(0, 0)] * (array.ndim - 2)])


def _appended_files(path):
    """The files in the zip archive that is appended to the network."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        raise not_ours(path) from None
