from __future__ import annotations

import os
import threading
import zipfile

import numpy as np

from albert_tf_lite.answers import TOKEN_CLASSIFICATION
from albert_tf_lite.contents import Contents, not_ours
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel, existing_file
from albert_tf_lite.extra import import_extra
from albert_tf_lite.quiet import silent_stderr

INPUTS = ("token_ids", "segment_ids", "padding_mask")


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
        AlbertError: if the file was not written by `albert_tf.export.litert`.

    Example:
    ```python
    model = LiteRTModel("model.tflite")
    model.predict(["房间很干净", "太差了"])["label"]
    ```
    """

    def __init__(self, path: str | os.PathLike, threads: int | None = None):
        path = existing_file(path)
        with silent_stderr():
            compiled_model = import_extra("ai_edge_litert.compiled_model")
            options = import_extra("ai_edge_litert.options")
        super().__init__(Contents.of(_appended_files(path), path))
        self.lengths = self.settings.get("lengths")
        if not self.lengths:
            raise not_ours(path)
        # In memory, each weight is packed for the processor once, and not for each
        # layer and length that uses it: of the base size 0.1 GB, and not 1.4.
        cache = {"xnnpack_weight_cache_path": ":memory"}
        cpu = options.CpuOptions(num_threads=threads or 0, **cache)
        with silent_stderr():
            self._network = compiled_model.CompiledModel.from_file(
                str(path), options=options.Options(cpu_options=cpu)
            )
        self._buffers = {}
        self._lock = threading.Lock()

    def __del__(self):
        # The library tells what it frees.
        with silent_stderr():
            self._network = self._buffers = None

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        inputs = (np.asarray(features[name], "int32") for name in INPUTS)
        rows = zip(*inputs, strict=True)
        with self._lock:
            return np.stack([self._call_one(*row) for row in rows])

    def _call_one(self, *row):
        """The output of one example, by the signature that is just long enough."""
        tokens = np.flatnonzero(row[INPUTS.index("padding_mask")])
        needed = tokens[-1] + 1 if len(tokens) else 1
        fitting = [length for length in self.lengths if length >= needed]
        if not fitting:
            raise AlbertError(
                f"The example has {needed} tokens, and the file is for "
                f"{self.lengths[-1]} at most. Export it with a larger number in "
                "`lengths`."
            )
        length = fitting[0]
        inputs, outputs = self._buffers_of(length)
        for name, values in zip(INPUTS, row, strict=True):
            inputs[name].write(_of_length(values[np.newaxis], length, axis=1))
        self._network.run_by_name(f"tokens_{length}", inputs, outputs)
        units = self.settings["units"]
        (output,) = outputs.values()
        if self.task != TOKEN_CLASSIFICATION:
            return output.read(units, np.float32).copy()
        values = output.read(length * units, np.float32).reshape(length, units)
        return _of_length(values, len(row[0]), axis=0)

    def _buffers_of(self, length):
        """What a signature reads and what it writes, by name."""
        if length not in self._buffers:
            name, network = f"tokens_{length}", self._network
            output = self.settings["output"]
            with silent_stderr():
                inputs = {
                    x: network.create_input_buffer_by_name(name, x) for x in INPUTS
                }
                outputs = {output: network.create_output_buffer_by_name(name, output)}
                # The first time it is written to, the library greets once more.
                inputs["token_ids"].write(np.zeros([1, length], "int32"))
            self._buffers[length] = inputs, outputs
        return self._buffers[length]


def _of_length(array, length, axis):
    """An array whose axis is cut, or filled up with zeros."""
    array = array.take(range(min(length, array.shape[axis])), axis)
    missing = [
        (0, length - array.shape[i] if i == axis else 0) for i in range(array.ndim)
    ]
    return np.pad(array, missing)


def _appended_files(path):
    """The files in the zip archive that is appended to the network."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        raise not_ours(path) from None
