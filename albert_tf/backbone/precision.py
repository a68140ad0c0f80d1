"""Choose the fastest precision by a measurement."""

import pathlib
import statistics
import sys
import time
from typing import NamedTuple

import keras
from keras import ops

from albert_tf_lite.errors import AlbertError

# Names of bfloat16 units in /proc/cpuinfo, on x86 and ARM. Without them TensorFlow
# converts to float32, which is several times slower.
BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16", "bf16", "svebf16")
# The minimum speed-up of a matrix product. Casts, softmax and LayerNorm gain nothing.
MIN_GAIN = 1.25
_ROUNDS = 7
_CPU_INFO = pathlib.Path("/proc/cpuinfo")


class Precision(NamedTuple):
    """A policy of Keras, `"float32"` or `"mixed_bfloat16"`, and the reason for it."""

    dtype: str
    reason: str

    def __str__(self):
        return f"Computing in {self.dtype}: {self.reason}."


def choose_precision(width: int = 1024) -> Precision:
    """Choose bfloat16 if the processor has bfloat16 units and is faster with them.

    It times a matrix product in both types, which takes a few tenths of a second. The
    weights remain float32.

    Args:
        width: int. Width of the matrices, such as the `hidden_dim` of the model.

    Returns:
        A `Precision`.

    Example:
    ```python
    print(albert_tf.backbone.choose_precision(312))
    ```
    """
    if not _may_have_bfloat16():
        return Precision("float32", "the processor has no units for bfloat16")
    gain = _bfloat16_gain(width)
    reason = f"a matrix product is {gain:.2f} times as fast in bfloat16"
    if gain < MIN_GAIN:
        return Precision("float32", f"{reason}, less than {MIN_GAIN}")
    return Precision("mixed_bfloat16", reason)


def as_dtype(precision: str, width: int = 1024) -> str:
    """Return the Keras policy of a precision; print the choice of `"auto"`."""
    policies = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
    if precision == "auto":
        chosen = choose_precision(width)
        print(chosen, file=sys.stderr)
        return chosen.dtype
    if precision not in policies:
        raise AlbertError(
            f"`precision` must be 'auto' or one of {list(policies)}. Received: "
            f"{precision!r}"
        )
    return policies[precision]


def _may_have_bfloat16():
    # On a GPU, and where processors are not listed, the measurement decides.
    if any("gpu" in device.lower() for device in keras.distribution.list_devices()):
        return True
    return not _CPU_INFO.exists() or not set(BFLOAT16_FLAGS).isdisjoint(
        _CPU_INFO.read_text().split()
    )


def _bfloat16_gain(width):
    """Measure the speed-up of a matrix product in bfloat16."""
    a = keras.random.normal((1024, width), seed=1)
    b = keras.random.normal((width, 4 * width), seed=2)
    pairs = {x: (ops.cast(a, x), ops.cast(b, x)) for x in ("float32", "bfloat16")}
    times = {dtype: [] for dtype in pairs}
    # The first round, which chooses kernels, is not counted.
    for number in range(_ROUNDS + 1):
        for dtype, (left, right) in pairs.items():
            start = time.perf_counter()
            # The conversion waits for the product, on a GPU, too.
            float(ops.matmul(left, right)[0, 0])
            if number:
                times[dtype].append(time.perf_counter() - start)
    return statistics.median(times["float32"]) / statistics.median(times["bfloat16"])
