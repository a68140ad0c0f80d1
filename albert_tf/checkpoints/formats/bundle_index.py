"""Reading the index of a TensorFlow checkpoint, and trusting none of its bytes.

TensorFlow's own reader was written for files it wrote itself: a cut or altered
index can end the whole process. This one reads the same file first, in Python, and
says in one sentence what is wrong with it.

`PREFIX.index` is a LevelDB table: blocks of sorted keys and values, an index block
that says where they are, and a footer that says where the index block is. The key
`""` holds a `BundleHeaderProto`, each other key is the name of a tensor and holds
its `BundleEntryProto`: where it lies in `PREFIX.data-?????-of-?????`.

Reference:
    LevelDB `doc/table_format.md`; TensorFlow `core/lib/io/format.cc` and
    `core/util/tensor_bundle/tensor_bundle.h`.
"""

import dataclasses
import itertools
import math
import os
import pathlib

from google.protobuf.message import DecodeError
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from albert_tf.checkpoints.layout import CheckpointError

MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER = 48
_TRAILER = 5  # What follows each block: its compression (1 byte) and its CRC32C.
_PLAIN, _SNAPPY = 0, 1

# The released indexes have 2 to 20 kB and at most 100 tensors. The limits bound the
# time and memory that a hostile file can cost.
MAX_INDEX_BYTES = 2**20
MAX_BLOCK_BYTES = 2**22
MAX_TENSORS = 20_000
MAX_NAME_BYTES = 1024
MAX_ELEMENTS = 2**40
MAX_RANK = 254  # TensorFlow's own.

# Name and bytes of each kind of number. Other kinds (strings, resources) have no
# place among weights.
_DTYPES = {
    types_pb2.DT_FLOAT: ("float32", 4),
    types_pb2.DT_DOUBLE: ("float64", 8),
    types_pb2.DT_HALF: ("float16", 2),
    types_pb2.DT_BFLOAT16: ("bfloat16", 2),
    types_pb2.DT_INT8: ("int8", 1),
    types_pb2.DT_UINT8: ("uint8", 1),
    types_pb2.DT_INT16: ("int16", 2),
    types_pb2.DT_UINT16: ("uint16", 2),
    types_pb2.DT_INT32: ("int32", 4),
    types_pb2.DT_UINT32: ("uint32", 4),
    types_pb2.DT_INT64: ("int64", 8),
    types_pb2.DT_UINT64: ("uint64", 8),
    types_pb2.DT_BOOL: ("bool", 1),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """Where a tensor lies, and what it is.

    Attributes:
        dtype: string, such as `"float32"`.
        shape: tuple of ints.
        shard: int, number of the data file.
        offset, size: ints, in bytes.
        crc32c: int, the checksum as the file has it, which is masked (see
            `masked_crc32c`).
    """

    dtype: str
    shape: tuple
    shard: int
    offset: int
    size: int
    crc32c: int


class _DamagedError(Exception):
    """What is wrong, in words that follow "FILE is damaged: "."""


def read_index(prefix):
    """Read and check the index of a checkpoint.

    Every block's checksum, every name, type, shape and place is checked, and that
    the data files are there and long enough. The data itself is not read.

    Args:
        prefix: string or path, the checkpoint without `.index`.

    Returns:
        A dict of tensor name to `Entry`, in the order of the file (by name).

    Raises:
        FileNotFoundError: if there is no index.
        CheckpointError: if the index is damaged, or a data file is absent or cut
            short.
    """
    path = pathlib.Path(f"{os.fspath(prefix)}.index")
    try:
        num_shards, entries = _parse(_read_file(path))
    except _DamagedError as error:
        raise CheckpointError(
            f"{path} is damaged: {error}. Download or copy the checkpoint again."
        ) from None
    _check_data_files(prefix, num_shards, entries)
    return entries


def _read_file(path):
    size = path.stat().st_size
    if size > MAX_INDEX_BYTES:
        raise _DamagedError(
            f"it has {size} bytes, and no index of an ALBERT checkpoint has more than "
            f"{MAX_INDEX_BYTES}"
        )
    with path.open("rb") as file:
        return file.read(MAX_INDEX_BYTES)


def _parse(content):
    rows = _rows(content)
    key, value = next(rows, (None, None))
    if key != b"":
        raise _DamagedError("its first key is not that of the header")
    num_shards = _num_shards(value)
    entries = {}
    for key, value in rows:
        if len(entries) == MAX_TENSORS:
            raise _DamagedError(f"it names more than {MAX_TENSORS} tensors")
        entries[_name(key)] = _entry(_name(key), value, num_shards)
    _check_overlaps(entries)
    return num_shards, entries


# === The table ===


def _rows(content):
    """Every (key, value) of the table, checked to be in strictly rising order."""
    if len(content) < _FOOTER or content[-8:] != MAGIC:
        raise _DamagedError(
            "it does not end as an index does (cut short, or not the index of a "
            "TensorFlow checkpoint)"
        )
    footer = content[-_FOOTER:-8]
    _, position = _block_handle(footer, 0)  # Of the meta index, which is empty.
    handle, _ = _block_handle(footer, position)
    body = content[:-_FOOTER]
    previous, end = None, 0
    for _, value in _block_rows(_block(body, handle)):
        block_handle, _ = _block_handle(value, 0)
        # Blocks that overlap would let a small file cost any amount of time.
        if block_handle[0] < end:
            raise _DamagedError("two of its blocks overlap")
        end = sum(block_handle)
        for key, row in _block_rows(_block(body, block_handle)):
            if previous is not None and key <= previous:
                raise _DamagedError("its keys are not in order")
            previous = key
            yield key, row


def _block_handle(data, position):
    offset, position = _varint(data, position)
    size, position = _varint(data, position)
    return (offset, size), position


def _block(body, handle):
    """The content of a block whose checksum is right."""
    offset, size = handle
    end = offset + size
    if end + _TRAILER > len(body):
        raise _DamagedError("a block lies outside of the file")
    stored = int.from_bytes(body[end + 1 : end + _TRAILER], "little")
    if masked_crc32c(body[offset : end + 1]) != stored:
        raise _DamagedError("the checksum of a block is wrong")
    if body[end] == _SNAPPY:
        return _decompress(body[offset:end])
    if body[end] != _PLAIN:
        raise _DamagedError(f"a block has the unknown compression {body[end]}")
    return body[offset:end]


def _block_rows(block):
    """Every (key, value) of a block; a key shares a prefix with the one before."""
    end, restarts = _restarts(block)
    position, key, starts = 0, b"", set()
    while position < end:
        start = position
        shared, position = _varint(block, position)
        unshared, position = _varint(block, position)
        size, position = _varint(block, position)
        if shared > len(key) or shared + unshared > MAX_NAME_BYTES:
            raise _DamagedError("a key has an impossible length")
        if position + unshared + size > end:
            raise _DamagedError("a value is longer than its block")
        if shared == 0:
            starts.add(start)
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + size]
        position += size
    if not starts.issuperset(restarts):
        raise _DamagedError("a block's list of whole keys is wrong")


def _restarts(block):
    """Where the rows end, and which of them begin with a whole key."""
    count = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (count + 1)
    if len(block) < 4 or count < 1 or end < 0:
        raise _DamagedError("a block has no list of whole keys")
    words = memoryview(block)[end:-4].cast("B")
    restarts = [
        int.from_bytes(words[4 * i : 4 * i + 4], "little") for i in range(count)
    ]
    # A block without rows has one restart all the same.
    return end, restarts if end else []


def _varint(data, position):
    """A number of 7 bits a byte, the lowest first."""
    number = 0
    for shift in range(0, 64, 7):
        if position >= len(data):
            raise _DamagedError("a number in it is cut short")
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
    raise _DamagedError("a number in it is too long")


# === Snappy, in which the indexes with optimizer slots were released ===


def _decompress(data):
    """Undo Snappy (google/snappy `format_description.txt`)."""
    expected, position = _varint(data, 0)
    if expected > MAX_BLOCK_BYTES:
        raise _DamagedError(f"a block is to have {expected} bytes")
    plain = bytearray()
    while position < len(data):
        tag = data[position]
        position += 1
        if tag & 3 == 0:
            size, position = _literal_size(data, tag >> 2, position)
            if position + size > len(data):
                raise _DamagedError("a compressed block is cut short")
            plain += data[position : position + size]
            position += size
        else:
            size, distance, position = _copy(data, tag, position)
            if not 0 < distance <= len(plain):
                raise _DamagedError("a compressed block copies what is not there")
            # Longer than its distance, a copy repeats what it has just written.
            piece = plain[-distance:][:size]
            plain += (piece * (size // len(piece) + 1))[:size]
        if len(plain) > expected:
            break
    if len(plain) != expected:
        raise _DamagedError("a compressed block has another length than it says")
    return bytes(plain)


def _literal_size(data, code, position):
    """Up to 60 the size itself, then the number of bytes it has."""
    width = max(0, code - 59)
    size = _little_endian(data, position, width) if width else code
    return size + 1, position + width


def _copy(data, tag, position):
    """How many bytes, from how far back, and where the next element begins."""
    if tag & 3 == 1:
        low = _little_endian(data, position, 1)
        return 4 + (tag >> 2 & 7), tag >> 5 << 8 | low, position + 1
    width = 2 if tag & 3 == 2 else 4
    distance = _little_endian(data, position, width)
    return 1 + (tag >> 2), distance, position + width


def _little_endian(data, position, width):
    if position + width > len(data):
        raise _DamagedError("a compressed block is cut short")
    return int.from_bytes(data[position : position + width], "little")


# === The messages ===


def _message(kind, value):
    try:
        return kind.FromString(value)
    except DecodeError:
        raise _DamagedError("an entry cannot be decoded") from None


def _num_shards(value):
    header = _message(tensor_bundle_pb2.BundleHeaderProto, value)
    if header.endianness != tensor_bundle_pb2.BundleHeaderProto.LITTLE:
        raise _DamagedError("it is for a big-endian machine, which is not supported")
    version = header.version
    if version.producer < 0 or version.min_consumer > 1 or 1 in version.bad_consumers:
        raise _DamagedError("it is of a version no TensorFlow of today reads")
    if not 1 <= header.num_shards <= 99_999:
        raise _DamagedError(f"it speaks of {header.num_shards} data files")
    return header.num_shards


def _name(key):
    try:
        name = key.decode("utf-8")
    except UnicodeDecodeError:
        raise _DamagedError("the name of a tensor is not text") from None
    if not name.isprintable():
        raise _DamagedError(f"the name of a tensor has control characters: {name!r}")
    return name


def _entry(name, value, num_shards):
    entry = _message(tensor_bundle_pb2.BundleEntryProto, value)
    if entry.slices:
        raise _DamagedError(
            f"{name} is a partitioned variable, which no ALBERT checkpoint has"
        )
    if entry.dtype not in _DTYPES:
        kind = types_pb2.DataType.Name(entry.dtype) if _known(entry.dtype) else "?"
        raise _DamagedError(f"{name} holds no numbers but {kind} ({entry.dtype})")
    dtype, itemsize = _DTYPES[entry.dtype]
    shape = _shape(name, entry.shape)
    if entry.size != math.prod(shape) * itemsize:
        raise _DamagedError(
            f"{name} has {entry.size} bytes, which is not what {dtype} {list(shape)} "
            "takes"
        )
    if not 0 <= entry.shard_id < num_shards:
        raise _DamagedError(
            f"{name} is in data file {entry.shard_id} of {num_shards}, counted from 0"
        )
    if entry.offset < 0:
        raise _DamagedError(f"{name} begins at byte {entry.offset}")
    return Entry(dtype, shape, entry.shard_id, entry.offset, entry.size, entry.crc32c)


def _known(number):
    return number in types_pb2.DataType.values()


def _shape(name, proto):
    shape = tuple(dim.size for dim in proto.dim)
    # Zeros do not count, for TensorFlow multiplies from the left, in 64 bits.
    if (
        proto.unknown_rank
        or len(shape) > MAX_RANK
        or any(dim < 0 for dim in shape)
        or math.prod(max(dim, 1) for dim in shape) > MAX_ELEMENTS
    ):
        raise _DamagedError(f"{name} has an impossible shape: {_short(shape)}")
    return shape


def _short(shape):
    return f"{list(shape[:8])}{' ...' if len(shape) > 8 else ''}"


# === The data files ===


def _check_overlaps(entries):
    places = sorted(
        (entry.shard, entry.offset, entry.offset + entry.size, name)
        for name, entry in entries.items()
        if entry.size
    )
    for (shard, _, end, name), (other, start, _, after) in itertools.pairwise(places):
        if shard == other and start < end:
            raise _DamagedError(f"{name} and {after} overlap in the data file")


def _check_data_files(prefix, num_shards, entries):
    needed = {}
    for entry in entries.values():
        end = entry.offset + entry.size
        needed[entry.shard] = max(end, needed.get(entry.shard, 0))
    for shard, expected in sorted(needed.items()):
        path = pathlib.Path(f"{os.fspath(prefix)}.data-{shard:05d}-of-{num_shards:05d}")
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


# === CRC32C ===


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_CRC_TABLE = _crc_table()


def masked_crc32c(data):
    """The CRC32C of some bytes as LevelDB and TensorFlow store it.

    Rotated and shifted, so that the checksum of data that holds its own checksum
    is not degenerate.

    Args:
        data: bytes.

    Returns:
        An int below 2**32.
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
