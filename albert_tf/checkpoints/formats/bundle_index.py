"""Reading the index of a TensorFlow checkpoint: shapes, types and checksums.

TensorFlow's own reader gives no checksums, by which a release is recognised. And an
index that was written by other code, or changed together with its checksums, can end
the whole process: of 1,061 such mutations TensorFlow 2.21 aborted on 267 (an entry
that cannot be decoded, an impossible shape, an unknown type, a name that is not
UTF-8), of 439 changes without the checksums and 40 cuts on none. So the index is
read here first; what TensorFlow refuses by itself is left to it.

`PREFIX.index` is a LevelDB table: blocks of sorted keys and values, an index block
that says where they are, and a footer that says where the index block is. The key
`""` holds a `BundleHeaderProto`, each other key is the name of a tensor and holds
its `BundleEntryProto`: where it lies in `PREFIX.data-?????-of-?????`.

Reference:
    LevelDB `doc/table_format.md`; TensorFlow `core/lib/io/format.cc` and
    `core/util/tensor_bundle/tensor_bundle.h`.
"""

import math
import pathlib
import typing

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import tensor_bundle_pb2

from albert_tf.checkpoints.layout import CheckpointError

MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER = 48
_TRAILER = 5  # What follows each block: its compression (1 byte) and its CRC32C.
_PLAIN, _SNAPPY = 0, 1
# The released indexes have 2 to 20 kB.
MAX_INDEX_BYTES = 2**20
MAX_BLOCK_BYTES = 2**22
MAX_ELEMENTS = 2**40
MAX_RANK = 254  # TensorFlow's own.


class Entry(typing.NamedTuple):
    """What a tensor is, where it lies (in bytes), and its `masked_crc32c`."""

    dtype: str
    shape: tuple
    shard: int
    offset: int
    size: int
    crc32c: int


class _DamagedError(Exception):
    """What is wrong, in words that follow "FILE is damaged: "."""


def read_index(prefix):
    """The tensors of a checkpoint, a dict of name to `Entry` in the order of the names.

    Args:
        prefix: string or path, the checkpoint without `.index`.

    Raises:
        CheckpointError: if the index is damaged, or a data file is absent or cut
            short.
    """
    path = pathlib.Path(f"{prefix}.index")
    try:
        size = path.stat().st_size
        if size > MAX_INDEX_BYTES:
            raise _DamagedError(
                f"it has {size} bytes, and that of an ALBERT {MAX_INDEX_BYTES} at most"
            )
        num_shards, entries = _parse(path.read_bytes())
    except _DamagedError as error:
        raise CheckpointError(
            f"{path} is damaged: {error}. Download or copy the checkpoint again."
        ) from None
    _check_data_files(prefix, num_shards, entries)
    return entries


def _parse(content):
    rows = list(_rows(content))
    keys = [key for key, _ in rows]
    if keys != sorted(set(keys)) or keys[:1] != [b""]:
        raise _DamagedError("its keys are not in order, or it has no header")
    try:
        header = tensor_bundle_pb2.BundleHeaderProto.FromString(rows[0][1])
        return header.num_shards, dict(_entry(*row) for row in rows[1:])
    except DecodeError:
        raise _DamagedError("an entry cannot be decoded") from None


# === The table ===


def _rows(content):
    """Every (key, value) of the table."""
    if len(content) < _FOOTER or content[-8:] != MAGIC:
        raise _DamagedError(
            "it does not end as an index does (cut short, or not the index of a "
            "TensorFlow checkpoint)"
        )
    footer, body = content[-_FOOTER:-8], content[:-_FOOTER]
    _, position = _handle(footer, 0)  # Of the meta index, which is empty.
    handle, _ = _handle(footer, position)
    for _, value in _block_rows(_block(body, *handle)):
        yield from _block_rows(_block(body, *_handle(value, 0)[0]))


def _handle(data, position):
    """Offset and size of a block, and where what follows them begins."""
    offset, position = _varint(data, position)
    size, position = _varint(data, position)
    return (offset, size), position


def _block(body, offset, size):
    """The content of a block whose checksum is right."""
    end = offset + size
    stored = int.from_bytes(body[end + 1 : end + _TRAILER], "little")
    if end + _TRAILER > len(body) or masked_crc32c(body[offset : end + 1]) != stored:
        raise _DamagedError("the checksum of a block is wrong")
    if body[end] == _SNAPPY:
        return _decompress(body[offset:end])
    if body[end] != _PLAIN:
        raise _DamagedError(f"a block has the unknown compression {body[end]}")
    return body[offset:end]


def _block_rows(block):
    """Every (key, value) of a block; a key shares a prefix with the one before."""
    restarts = int.from_bytes(block[-4:], "little")
    end, position, key = len(block) - 4 * (restarts + 1), 0, b""
    while position < end:
        shared, position = _varint(block, position)
        unshared, position = _varint(block, position)
        size, position = _varint(block, position)
        if position + unshared + size > end:
            raise _DamagedError("a value is longer than its block")
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + size]
        position += size


def _varint(data, position):
    """A number of 7 bits a byte, the lowest first, and where it ends."""
    number = 0
    for shift, byte in zip(range(0, 64, 7), data[position:], strict=False):
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
    raise _DamagedError("a number in it is cut short or too long")


def _decompress(data):
    """Undo Snappy, in which indexes with optimizer slots were released.

    Reference: google/snappy `format_description.txt`.
    """
    expected, position = _varint(data, 0)
    plain = bytearray()
    while position < len(data) and len(plain) < min(expected, MAX_BLOCK_BYTES):
        tag = data[position]
        kind, size, position = tag & 3, (tag >> 2) + 1, position + 1
        # Numbers of 1 to 4 bytes: the size of a long literal, or how far back.
        width = max(0, size - 60) if kind == 0 else (1, 2, 4)[kind - 1]
        number = int.from_bytes(data[position : position + width], "little")
        position += width
        if kind == 0:
            size = number + 1 if width else size
            plain += data[position : position + size]
            position += size
            continue
        if kind == 1:
            size, number = 4 + (tag >> 2 & 7), tag >> 5 << 8 | number
        if not 0 < number <= len(plain):
            raise _DamagedError("a compressed block copies what is not there")
        # Longer than its distance, a copy repeats what it has just written.
        piece = plain[-number:][:size]
        plain += (piece * (size // len(piece) + 1))[:size]
    if len(plain) != expected:
        raise _DamagedError("a compressed block has another length than it says")
    return bytes(plain)


# === What TensorFlow's reader would abort on ===


def _entry(key, value):
    name = key.decode("utf-8", "replace")
    if not name.isprintable() or name.encode() != key:
        raise _DamagedError(f"the name of a tensor is not text: {name!r}")
    entry = tensor_bundle_pb2.BundleEntryProto.FromString(value)
    shape = tuple(dim.size for dim in entry.shape.dim)
    # Zeros do not count, for TensorFlow multiplies from the left, in 64 bits.
    if (
        entry.shape.unknown_rank
        or len(shape) > MAX_RANK
        or any(dim < 0 for dim in shape)
        or math.prod(max(dim, 1) for dim in shape) > MAX_ELEMENTS
    ):
        raise _DamagedError(f"{name} has an impossible shape: {str(shape)[:80]}")
    place = entry.shard_id, entry.offset, entry.size
    return name, Entry(_dtype(name, entry.dtype), shape, *place, entry.crc32c)


def _dtype(name, number):
    try:
        # From 100 on they are references to variables.
        dtype = tf.dtypes.as_dtype(number if number < 100 else 0)
    except TypeError:
        dtype = tf.dtypes.variant
    if not (dtype.is_floating or dtype.is_integer or dtype.is_bool):
        raise _DamagedError(f"{name} holds no numbers but type {number}")
    return dtype.name


# === The data files ===


def _check_data_files(prefix, num_shards, entries):
    needed = {}
    for entry in entries.values():
        end = entry.offset + entry.size
        needed[entry.shard] = max(end, needed.get(entry.shard, 0))
    for shard, expected in sorted(needed.items()):
        path = pathlib.Path(f"{prefix}.data-{shard:05d}-of-{num_shards:05d}")
        if not path.is_file():
            raise CheckpointError(
                f"{path} is not there: the index has {expected} bytes of tensors in "
                "it. Put it beside the index, under this name."
            )
        found = path.stat().st_size
        if found < expected:
            raise CheckpointError(
                f"{path} is cut short: expected {expected} bytes, found {found}. "
                "Download or copy the checkpoint again."
            )


_CRC_TABLE = list(range(256))
for _ in range(8):
    _CRC_TABLE = [(x >> 1) ^ (0x82F63B78 if x & 1 else 0) for x in _CRC_TABLE]


def masked_crc32c(data):
    """The CRC32C of some bytes, rotated and shifted as LevelDB and TensorFlow do.

    So the checksum of data that holds its own checksum is not degenerate.
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
