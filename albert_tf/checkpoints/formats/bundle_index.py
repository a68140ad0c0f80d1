"""Read the index of a TensorFlow checkpoint, which a stranger may have written.

TensorFlow's `CheckpointReader` ends the process for an index with an entry that is no
protocol buffer, or whose shape is not valid. `RestoreV2`, which reads the tensors,
raises an error.

The index is a table of LevelDB: blocks of entries with keys and values, then a block
with the places of these blocks, and a footer with the place of that.
"""

import math
import pathlib
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import tensor_slice_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from albert_tf_lite.pointers import read_bytes

# Bytes of the footer, and the number at its end.
_FOOTER, _MAGIC = 48, 0xDB4775248B80FB57
# After a block: its compression, which old versions of TensorFlow used, and a checksum.
_TRAILER, _SNAPPY = 5, 1
_MOST_DIMENSIONS = 254


class Entry(NamedTuple):
    """A tensor of a checkpoint.

    Attributes:
        shape: list of ints.
        dtype: its type.
        shard, end: ints, the number of its file of data, and the byte there after it.
            They are 0 for one in parts, each of which has an entry of its own.
    """

    shape: list[int]
    dtype: tf.DType
    shard: int
    end: int


def read_index(path: pathlib.Path) -> dict[str, Entry]:
    """Return the tensors of an index by their names.

    Raises:
        ValueError: if the index is damaged.
    """
    data = read_bytes(path)
    start, size = _footer(data)
    entries: dict[str, Entry] = {}
    for _, handle in _block(data, start, size):
        (start, size), _ = _varints(handle, 0, 2)
        for key, value in _block(data, start, size):
            # The empty key is that of the header, and parts of tensors begin with 0.
            if key and key[0]:
                entries[key.decode()] = _entry(value)
    return entries


def _entry(value: bytes) -> Entry:
    """Return the tensor in the value of an entry."""
    message = tensor_bundle_pb2.BundleEntryProto()
    try:
        message.ParseFromString(value)
        dtype = tf.dtypes.as_dtype(message.dtype)
    except (DecodeError, TypeError) as error:
        raise ValueError("an entry is damaged") from error
    shape = [dimension.size for dimension in message.shape.dim]
    _check_shape(shape, message)
    for part in message.slices:
        _check_part(shape, part)
    if message.slices:
        return Entry(shape, dtype, 0, 0)
    if dtype.size and message.size != math.prod(shape) * dtype.size:
        raise ValueError(f"a tensor of the shape {shape} has {message.size} bytes")
    if min(message.offset, message.size, message.shard_id) < 0:
        raise ValueError("a tensor has a place below 0")
    return Entry(shape, dtype, message.shard_id, message.offset + message.size)


def _check_shape(
    shape: Sequence[int], message: tensor_bundle_pb2.BundleEntryProto
) -> None:
    is_valid = len(shape) <= _MOST_DIMENSIONS and min(shape, default=0) >= 0
    if not is_valid or message.shape.unknown_rank or math.prod(shape) >= 2**63:
        raise ValueError(f"a tensor has the shape {shape!s:.80}")


def _check_part(shape: Sequence[int], part: tensor_slice_pb2.TensorSliceProto) -> None:
    """Raise unless the extents of a part of a tensor lie in it."""
    are_inside = len(part.extent) == len(shape) and all(
        extent.start >= 0
        and extent.length >= 0
        and extent.start + extent.length <= dimension
        for extent, dimension in zip(part.extent, shape, strict=False)
    )
    if not are_inside:
        raise ValueError(f"a part of a tensor does not lie in its shape, {shape!s:.80}")


# === Tables of LevelDB ===


def _footer(data: bytes) -> tuple[int, int]:
    """Return the start and the size of the block with the places of the others."""
    footer = data[-_FOOTER:]
    if len(footer) < _FOOTER or footer[-8:] != struct.pack("<Q", _MAGIC):
        raise ValueError("it does not end as an index")
    (_, _, start, size), _ = _varints(footer, 0, 4)
    return start, size


def _block(data: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block."""
    if start + size + _TRAILER > len(data) or size < 4:
        raise ValueError("a block does not lie in the file")
    block = data[start : start + size]
    if compression := data[start + size]:
        if compression != _SNAPPY:
            raise ValueError("a block has an unknown compression")
        block = uncompressed(block)
        size = len(block)
    # At its end are the places where keys are complete, and their number.
    (count,) = struct.unpack("<I", block[-4:])
    end = size - 4 * (count + 1)
    place, key = 0, b""
    while place < end:
        (shared, unshared, length), place = _varints(block, place, 3)
        if shared > len(key) or place + unshared + length > end:
            raise ValueError("an entry does not lie in its block")
        key = key[:shared] + block[place : place + unshared]
        place += unshared
        yield key, block[place : place + length]
        place += length


def uncompressed(data: bytes) -> bytes:
    """Return the content of a block that Snappy compressed.

    It is a sequence of literals and of copies of what precedes. The lowest two bits of
    the first byte of each are its kind.
    """
    (expected,), place = _varints(data, 0, 1)
    output = bytearray()
    while place < len(data):
        kind, number = data[place] & 3, data[place] >> 2
        place += 1
        if kind == 0:
            # From 60 on, the length less one is in as many bytes.
            more = max(number - 59, 0)
            if more:
                number = int.from_bytes(data[place : place + more], "little")
            place += more
            output += data[place : place + number + 1]
            place += number + 1
            continue
        if kind == 1:
            length, width, high = 4 + (number & 7), 1, number >> 3 << 8
        else:
            length, width, high = number + 1, 2 if kind == 2 else 4, 0
        offset = high | int.from_bytes(data[place : place + width], "little")
        place += width
        if not 0 < offset <= len(output):
            raise ValueError("a compressed block is damaged")
        # A copy may reach into itself.
        start = len(output) - offset
        while length > 0:
            part = output[start : start + length]
            output += part
            length -= len(part)
    if len(output) != expected:
        raise ValueError("a compressed block is damaged")
    return bytes(output)


def _varints(data: bytes, place: int, count: int) -> tuple[list[int], int]:
    """Return numbers of seven bits per byte, the lowest first, and the place after."""
    numbers = []
    for _ in range(count):
        value = shift = 0
        while True:
            if place >= len(data) or shift > 63:
                raise ValueError("a number does not end")
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        numbers.append(value)
    return numbers, place
