"""What to compute in on this machine, by a measured rule."""

import dataclasses
import pathlib
import statistics
import sys
import time

import keras
from keras import ops

from albert_tf_lite.errors import AlbertError

# What /proc/cpuinfo calls units for bfloat16, of x86 and of ARM. Without them
# TensorFlow computes it by way of float32, several times slower.
BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16", "bf16", "svebf16")
# So many times as fast a matrix product must be: some of it goes into casts, and
# softmax and LayerNorm are no faster.
LEAST_GAIN = 1.25
_ROUNDS = 7
_CPU_INFO = pathlib.Path("/proc/cpuinfo")


@dataclasses.dataclass(frozen=True)
class Precision:
    """What to compute in, and why.

    Attributes:
        dtype: `"float32"` or `"mixed_bfloat16"`, as Keras takes it.
        reason: string.
    """

    dtype: str
    reason: str

    def __str__(self):
        return f"Computing in {self.dtype}: {self.reason}."


def choose_precision(width: int = 1024) -> Precision:
    """bfloat16 where the processor has units for it and is faster with them.

    Measures a matrix product in both for some tenths of a second, in turn. The weights
    are float32 in either.

    Args:
        width: int. Of the matrices, such as the `hidden_dim` of the model.
    """
    if not _has_gpu():
        flags = _processor_flags()
        if flags is not None and not flags & set(BFLOAT16_FLAGS):
            return Precision("float32", "the processor has no units for bfloat16")
    gain = _bfloat16_gain(width)
    told = f"a matrix product is {gain:.2f} times as fast in bfloat16"
    if gain < LEAST_GAIN:
        return Precision("float32", f"{told}, less than {LEAST_GAIN}")
    return Precision("mixed_bfloat16", told)


def as_dtype(precision: str, width: int = 1024) -> str:
    """The policy that a name stands for; what `"auto"` chose goes to standard error.

    Args:
        precision: `"auto"`, `"float32"` or `"bfloat16"`.
        width: as for `choose_precision`.
    """
    policies = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
    if precision == "auto":
        chosen = choose_precision(width)
        print(chosen, file=sys.stderr)
        return chosen.dtype
    if precision not in policies:
        raise AlbertError(
            f"`precision` should be 'auto' or in {list(policies)}. Received: "
            f"{precision!r}"
        )
    return policies[precision]


def _has_gpu():
    return any("gpu" in device.lower() for device in keras.distribution.list_devices())


def _processor_flags():
    """The names of what the processor can do, `None` where it is not told."""
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return None
    told = (line.partition(":") for line in lines)
    found = [flags for name, _, flags in told if name.strip() in ("flags", "Features")]
    return set(found[0].split()) if found else None


def _bfloat16_gain(width):
    """How many times as fast a matrix product is in bfloat16."""
    a = keras.random.normal((1024, width), seed=1)
    b = keras.random.normal((width, 4 * width), seed=2)
    pairs = {x: (ops.cast(a, x), ops.cast(b, x)) for x in ("float32", "bfloat16")}
    times = {dtype: [] for dtype in pairs}
    # The first round is not counted: kernels are chosen in it.
    for number in range(_ROUNDS + 1):
        for dtype, (left, right) in pairs.items():
            start = time.perf_counter()
            # The number waits for the product, on a GPU, too.
            float(ops.matmul(left, right)[0, 0])
            if number:
                times[dtype].append(time.perf_counter() - start)
    return statistics.median(times["float32"]) / statistics.median(times["bfloat16"])
