"""Models in LiteRT files."""

import functools
import math
import os
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable

import numpy as np

from albert_tf_lite.archives import check_expansion
from albert_tf_lite.changes import change_check
from albert_tf_lite.cpus import available_cpus
from albert_tf_lite.errors import (
    AlbertError,
    first_line,
    hide_exit,
    import_extra,
    silent_stderr,
)
from albert_tf_lite.exported_model import SETTINGS, ExportedModel, check_network
from albert_tf_lite.inputs import check_integer
from albert_tf_lite.packing import INPUTS
from albert_tf_lite.pointers import check_downloaded

# Operations of a small model are short, and threads wait for each other.
_MOST_THREADS = 4


class LiteRTModel(ExportedModel):
    """Model in a file of `albert_tf.export.litert` that answers strings.

    It needs the package ai-edge-litert and NumPy. Several threads may call it; their
    requests are run in turn.

    Args:
        path: path of the .tflite file, which includes settings and vocabulary.
        threads: optional int. Threads of the network, by default one per CPU and at
            most four.
        allow_unchecked: bool. Open a file without the checksum of its network, such as
            one of an earlier version. A damaged or hostile network can crash the
            process, so pass `True` only for files that you trust.

    Raises:
        FileNotFoundError: if the file does not exist.
        ImportError: if ai-edge-litert is not installed.
        AlbertError: if the file was not written by `albert_tf.export.litert`, is
            damaged, or has no checksum.

    Example:
    ```python
    model = LiteRTModel("model.tflite")
    model.predict(["房间很干净", "太差了"])["label"]
    ```
    """

    def __init__(
        self,
        path: str | os.PathLike,
        threads: int | None = None,
        *,
        allow_unchecked: bool = False,
    ):
        if threads is not None:
            threads = check_integer("threads", threads)
        self.threads, self._check_unchanged = threads, change_check(path)
        with silent_stderr():
            compiled_model = import_extra("ai_edge_litert.compiled_model")
            options = import_extra("ai_edge_litert.options")
            environment = _litert_environment()
        check_downloaded(path)
        settings, size = _read_archive(path)
        super().__init__(path, settings)
        self._allows_unchecked = allow_unchecked
        expected = self.settings.get("sha256")
        if expected is None and not allow_unchecked:
            raise AlbertError(
                f"{path} has no checksum: it is of an earlier version, or another tool "
                "has changed it. Export the model again or, if you trust the file, "
                "open it by LiteRTModel(path, allow_unchecked=True)."
            )
        check_network(path, size, expected)
        # With the cache each weight is packed for the processor once, instead of once
        # per layer and length: 0.1 instead of 1.4 GB for the base size.
        cache = {"xnnpack_weight_cache_path": ":memory"}
        threads = threads or min(available_cpus(), _MOST_THREADS)
        cpu = options.CpuOptions(num_threads=threads, **cache)
        if "lengths" not in self.settings:
            raise self._damaged("lengths is missing.")
        self.lengths: list[int] = sorted(self.settings["lengths"])
        # Files of earlier versions have signatures for one text.
        shapes = shapes_of(self.lengths, self.settings.get("batch_tokens", 0))
        # The most texts per call, by length.
        self.batch_sizes = {length: count for count, length in shapes}
        self._lock = threading.Lock()
        try:
            with silent_stderr():
                self._network = compiled_model.CompiledModel.from_file(
                    str(path),
                    options=options.Options(cpu_options=cpu),
                    environment=environment,
                )
                self._check_signatures(shapes)
                self._buffers = {x: self._create_buffers(*x) for x in shapes}
        except AlbertError:
            raise
        # The errors of LiteRT have no common class.
        except Exception as error:
            raise AlbertError(
                f"LiteRT cannot open {path}: {first_line(error)}. Export the model "
                "again."
            ) from error

    def _opener(self) -> Callable[..., ExportedModel]:
        return functools.partial(type(self), allow_unchecked=self._allows_unchecked)

    def _check_signatures(self, shapes: list[tuple[int, int]]) -> None:
        """Raise unless the network has the signatures of the settings."""
        found = self._network.get_signature_list()
        for shape in shapes:
            if signature(*shape) not in found:
                raise self._damaged(f"The network has no {signature(*shape)}.")

    def call(self, features: dict[str, np.ndarray]) -> np.ndarray:
        # [3, batch, time].
        inputs = np.stack([np.asarray(features[x], "int32") for x in INPUTS])
        _, batch, time = inputs.shape
        ends = inputs[INPUTS.index("padding_mask")] * np.arange(1, time + 1)
        needed = ends.max(axis=1, initial=1)
        if needed.max() > self.lengths[-1]:
            raise AlbertError(
                f"The example has {needed.max()} tokens. Expected at most "
                f"{self.lengths[-1]}."
            )
        lengths = np.array(self.lengths)[np.searchsorted(self.lengths, needed)]
        outputs = np.zeros((batch, *self._shape(time)), "float32")
        with self._lock:
            for length, examples in self._calls(lengths):
                given = self._run_signature(length, inputs[:, examples])
                if self._tagging is None:
                    outputs[examples] = given
                else:
                    outputs[examples, :length] = given[:, :time]
        return outputs

    def _shape(self, length):
        """Return the shape of a text's output."""
        units = self.settings["units"]
        return (units,) if self._tagging is None else (length, units)

    def _calls(self, lengths):
        """Yield the length and the examples of each call, for some lengths [examples].

        Examples that fill less than half of a call for several run alone.
        """
        for length, most in self.batch_sizes.items():
            examples = np.flatnonzero(lengths == length)
            for start in range(0, len(examples), most):
                together = examples[start : start + most]
                if 2 * len(together) >= most:
                    yield length, together
                    continue
                for i in together:
                    yield length, np.array([i])

    def _run_signature(self, length, inputs):
        """Return the outputs of rows [3, batch, time] by a signature of a length."""
        _, batch, time = inputs.shape
        count = 1 if batch == 1 else self.batch_sizes[length]
        padded = np.zeros((len(INPUTS), count, length), "int32")
        padded[:, :batch, :time] = inputs[:, :, :length]
        buffers, output = self._buffers[count, length]
        for name, values in zip(INPUTS, padded, strict=True):
            buffers[name].write(values)
        named = {self.settings["output"]: output}
        self._network.run_by_name(signature(count, length), buffers, named)
        shape = (count, *self._shape(length))
        return output.read(math.prod(shape), np.float32).reshape(shape)[:batch]

    def _create_buffers(self, count, length):
        """Return the input buffers by name, and the output buffer of a signature."""
        name = signature(count, length)
        create = self._network.create_input_buffer_by_name
        inputs = {x: create(name, x) for x in INPUTS}
        # The library logs at the first write.
        inputs["token_ids"].write(np.zeros([count, length], "int32"))
        output = self.settings["output"]
        return inputs, self._network.create_output_buffer_by_name(name, output)


def shapes_of(lengths: Iterable[int], batch_tokens: int) -> list[tuple[int, int]]:
    """Return the shapes [texts, tokens] of a file's signatures, one text first."""
    return sorted({(x, n) for n in lengths for x in (1, max(batch_tokens // n, 1))})


def signature(count: int, length: int) -> str:
    """Return the name of the signature of `count` texts."""
    return f"tokens_{length}" + (f"_texts_{count}" if count > 1 else "")


def _read_archive(path: str | os.PathLike) -> tuple[bytes | None, int]:
    """Return the settings behind a network, and the size of this.

    The settings are `None` for a file without them.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_expansion(path, archive.getinfo(SETTINGS).file_size)
            size = min(x.header_offset for x in archive.infolist())
            return archive.read(SETTINGS), size
    except AlbertError:
        raise
    # The module raises these for damaged, encrypted and foreign archives.
    except (
        zipfile.BadZipFile,
        LookupError,
        EOFError,
        ValueError,
        RuntimeError,
        zlib.error,
    ):
        return None, 0


@functools.cache
def _litert_environment():
    """Return the environment of all LiteRT models, for which the library logs."""
    # Freed at the exit, for which the library logs, too.
    hide_exit()
    environment = import_extra("ai_edge_litert.environment").Environment
    # A folder without plug-ins. By default, the library loads those of processors that
    # are not used here, and logs that it fails.
    return environment.create(compiler_plugin_path=os.path.dirname(__file__))
