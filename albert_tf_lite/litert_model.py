"""Models in LiteRT files."""

import contextlib
import functools
import os
import threading
import zipfile

import numpy as np

from albert_tf_lite.archives import check_expansion
from albert_tf_lite.changes import change_check
from albert_tf_lite.errors import AlbertError, hide_exit, import_extra, silent_stderr
from albert_tf_lite.exported_model import SETTINGS, ExportedModel, check_network
from albert_tf_lite.packing import INPUTS


class LiteRTModel(ExportedModel):
    """Model in a file of `albert_tf.export.litert` that answers strings.

    It needs the package ai-edge-litert and NumPy. Several threads may call it; their
    requests are run in turn.

    Args:
        path: path of the .tflite file, which includes settings and vocabulary.
        threads: optional int. Threads of the network.

    Raises:
        FileNotFoundError: if the file does not exist.
        ImportError: if ai-edge-litert is not installed.
        AlbertError: if the file was not written by `albert_tf.export.litert`.

    Example:
    ```python
    model = LiteRTModel("model.tflite")
    model.predict(["房间很干净", "太差了"])["label"]
    ```
    """

    def __init__(self, path: str | os.PathLike, threads: int | None = None):
        self.threads, self._check_unchanged = threads, change_check(path)
        with silent_stderr():
            compiled_model = import_extra("ai_edge_litert.compiled_model")
            options = import_extra("ai_edge_litert.options")
            environment = _litert_environment()
        settings = None
        with (
            contextlib.suppress(zipfile.BadZipFile, KeyError),
            # Appended to the network.
            zipfile.ZipFile(path) as archive,
        ):
            check_expansion(path, archive.getinfo(SETTINGS).file_size)
            settings = archive.read(SETTINGS)
            size = min(x.header_offset for x in archive.infolist())
        super().__init__(path, settings)
        check_network(path, size, self.settings.get("sha256"))
        # With the cache each weight is packed for the processor once, instead of once
        # per layer and length: 0.1 instead of 1.4 GB for the base size.
        cache = {"xnnpack_weight_cache_path": ":memory"}
        cpu = options.CpuOptions(num_threads=threads or 0, **cache)
        self.lengths: list[int] = self.settings["lengths"]
        self._lock = threading.Lock()
        with silent_stderr():
            self._network = compiled_model.CompiledModel.from_file(
                str(path),
                options=options.Options(cpu_options=cpu),
                environment=environment,
            )
            self._buffers = {n: self._create_buffers(n) for n in self.lengths}

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        inputs = (np.asarray(features[name], "int32") for name in INPUTS)
        with self._lock:
            return np.stack([self._call_one(*row) for row in zip(*inputs, strict=True)])

    def _call_one(self, *row):
        """Run an example by the shortest signature that is long enough."""
        needed = 1 + max(np.flatnonzero(row[INPUTS.index("padding_mask")]), default=0)
        length = next((n for n in self.lengths if n >= needed), None)
        if length is None:
            raise AlbertError(
                f"The example has {needed} tokens. Expected at most {self.lengths[-1]}."
            )
        inputs, output = self._buffers[length]
        for name, values in zip(INPUTS, row, strict=True):
            inputs[name].write(_resize(values, length)[np.newaxis])
        named = {self.settings["output"]: output}
        self._network.run_by_name(f"tokens_{length}", inputs, named)
        units = self.settings["units"]
        if self._tagging is None:
            return output.read(units, np.float32).copy()
        values = output.read(length * units, np.float32).reshape(length, units)
        return _resize(values, len(row[0]))

    def _create_buffers(self, length):
        """Return the input buffers by name, and the output buffer of a signature."""
        name, create = f"tokens_{length}", self._network.create_input_buffer_by_name
        inputs = {x: create(name, x) for x in INPUTS}
        # The library logs at the first write.
        inputs["token_ids"].write(np.zeros([1, length], "int32"))
        output = self.settings["output"]
        return inputs, self._network.create_output_buffer_by_name(name, output)


@functools.cache
def _litert_environment():
    """Return the environment of all LiteRT models, for which the library logs."""
    # Freed at the exit, for which the library logs, too.
    hide_exit()
    return import_extra("ai_edge_litert.environment").Environment.create()


def _resize(array, length):
    """Truncate the first axis of an array to a length, or fill it with zeros."""
    result = np.zeros((length, *array.shape[1:]), array.dtype)
    result[: len(array)] = array[:length]
    return result
