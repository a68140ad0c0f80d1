"""Computation in float32 or bfloat16."""

import os
import pathlib

from albert_tf.layers.devices import has_gpu
from albert_tf_lite.errors import AlbertError

# Names of bfloat16 units in /proc/cpuinfo, on x86 and ARM. Without them TensorFlow
# converts to float32, which is several times slower.
BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16", "bf16", "svebf16")


def as_dtype(precision: str) -> str:
    """Return the Keras policy of a precision.

    `"auto"` is bfloat16 on a GPU and on processors with units for it, otherwise
    float32.
    """
    policies = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
    if precision == "auto":
        is_fast = has_gpu() or has_bfloat16_units()
        return policies["bfloat16" if is_fast else "float32"]
    if precision not in policies:
        raise AlbertError(
            f"`precision` must be 'auto' or one of {list(policies)}. Received: "
            f"{precision!r}"
        )
    return policies[precision]


def has_bfloat16_units(cpu_info: str | os.PathLike = "/proc/cpuinfo") -> bool:
    """Return whether the processor that a file describes computes in bfloat16."""
    path = pathlib.Path(cpu_info)
    if not path.exists():
        return False
    flags = path.read_text("utf-8").split()
    return not set(BFLOAT16_FLAGS).isdisjoint(flags)
