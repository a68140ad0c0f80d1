import glob
import json
import pathlib
import random
import subprocess
import sys

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from albert_tf.checkpoints.formats import bundle_index
from albert_tf.checkpoints.formats.bundle_index import Entry, masked_crc32c, read_index
from albert_tf.checkpoints.layout import CheckpointError

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
INDEX = (GOLDEN / "google_early" / "model.ckpt-best.index").read_bytes()
DATA = GOLDEN / "google_early" / "model.ckpt-best.data-00000-of-00001"
ENTRIES = read_index(GOLDEN / "google_early" / "model.ckpt-best")


# === Writing tables ===


def varint(number):
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def block(rows):
    data, starts = b"", []
    for key, value in rows:
        starts.append(len(data))
        data += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    starts = starts or [0]
    return data + b"".join(
        number.to_bytes(4, "little") for number in (*starts, len(starts))
    )


def table(rows, pack=lambda data: data + b"\0"):
    """A LevelDB table with one block a row."""
    data = b""

    def add(content):
        nonlocal data
        handle = varint(len(data)) + varint(len(pack(content)) - 1)
        data += pack(content) + masked_crc32c(pack(content)).to_bytes(4, "little")
        return handle

    handles = [(key, add(block([(key, value)]))) for key, value in rows]
    footer = add(block([])) + add(block(handles))
    return data + footer + b"\0" * (40 - len(footer)) + bundle_index.MAGIC


def header(**fields):
    fields = {"num_shards": 1, **fields}
    return b"", tensor_bundle_pb2.BundleHeaderProto(**fields).SerializeToString()


def entry(name, shape=(2, 3), dtype=types_pb2.DT_FLOAT, offset=0, size=24, **fields):
    message = tensor_bundle_pb2.BundleEntryProto(
        dtype=dtype, offset=offset, size=size, **fields
    )
    for dim in shape:
        message.shape.dim.add().size = dim
    return name.encode(), message.SerializeToString()


def write(directory, content, data_bytes=1000):
    prefix = directory / "model.ckpt"
    pathlib.Path(f"{prefix}.index").write_bytes(content)
    pathlib.Path(f"{prefix}.data-00000-of-00001").write_bytes(bytes(data_bytes))
    return prefix


# === Right files ===


def test_agrees_with_tensorflow():
    for name in NAMES:
        assert_agrees(name)


def assert_agrees(name):
    prefix = GOLDEN / name / "model.ckpt-best"
    entries = read_index(prefix)
    reader = tf.train.load_checkpoint(str(prefix))
    assert {name: list(found.shape) for name, found in entries.items()} == (
        reader.get_variable_to_shape_map()
    )
    dtypes = reader.get_variable_to_dtype_map()
    assert all(found.dtype == dtypes[name].name for name, found in entries.items())


def test_checksums_are_those_of_the_data():
    data = (
        GOLDEN / "google_early" / "model.ckpt-best.data-00000-of-00001"
    ).read_bytes()
    for found in ENTRIES.values():
        content = data[found.offset : found.offset + found.size]
        assert masked_crc32c(content) == found.crc32c


def test_crc32c_of_the_standard():
    # RFC 3720 B.4 and the check value of CRC-32C, unmasked.
    for data, crc in ((b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)):
        masked = (masked_crc32c(data) - 0xA282EAD8) & 0xFFFFFFFF
        assert (masked >> 17 | masked << 15) & 0xFFFFFFFF == crc


def test_released_indexes(assets):
    """With optimizer slots, in Snappy."""
    paths = sorted(glob.glob(str(assets / "released" / "*" / "*.index")))
    assert len(paths) == 7
    for path in paths:
        content = pathlib.Path(path).read_bytes()
        _, entries = bundle_index._parse(content)
        expected = json.loads(pathlib.Path(f"{path}.json").read_text())["tensors"]
        assert list(entries) == sorted(expected)
        for name, found in entries.items():
            facts = expected[name]
            dtype = tf.dtypes.as_dtype(facts["dtype"]).name
            place = facts["shard"], facts["offset"], facts["size"], facts["crc32c"]
            assert found == Entry(dtype, tuple(facts["shape"]), *place)


def test_a_table_of_our_own(tmp_path):
    rows = [header(), entry("a"), entry("b", offset=24), entry("c", shape=(), size=4)]
    rows[-1] = entry("c", shape=(), offset=48, size=4, crc32c=7)
    entries = read_index(write(tmp_path, table(rows)))
    assert list(entries) == ["a", "b", "c"]
    assert entries["c"] == Entry("float32", (), 0, 48, 4, 7)


# === Files that are not all there ===


def test_data_that_is_absent_or_cut_short(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_index(tmp_path / "model.ckpt")
    prefix = write(tmp_path, INDEX, data_bytes=500)
    expected = max(found.offset + found.size for found in ENTRIES.values())
    with pytest.raises(CheckpointError, match=f"expected {expected} bytes, found 500"):
        read_index(prefix)
    rows = [header(num_shards=2), entry("a"), entry("b", shard_id=1)]
    prefix = write(tmp_path, table(rows))
    pathlib.Path(f"{prefix}.data-00000-of-00002").write_bytes(bytes(24))
    with pytest.raises(CheckpointError, match="data-00001-of-00002 is not there"):
        read_index(prefix)


def test_index_cut_anywhere():
    for length in range(0, len(INDEX), 3):
        with pytest.raises(bundle_index._DamagedError):
            bundle_index._parse(INDEX[:length])


def test_any_flipped_byte_is_found_or_harmless():
    harmless = 0
    for position in range(0, len(INDEX), 3):
        changed = bytearray(INDEX)
        changed[position] ^= 0x55
        try:
            assert bundle_index._parse(bytes(changed)) == (1, ENTRIES)
            harmless += 1
        except bundle_index._DamagedError:
            pass
    # The padding of the footer, and the meta index, which is empty and not read.
    assert harmless < 30


# === Files that lie ===

# What ends a process of TensorFlow 2.21, or would be told as something else.
HOSTILE = {
    "no header": ([entry("a")], "no header"),
    "not an entry": ([header(), (b"a", b"\xff\xff\xff")], "cannot be decoded"),
    "order": ([header(), entry("b"), entry("a", offset=24)], "keys are not in order"),
    "string": ([header(), entry("a", dtype=types_pb2.DT_STRING)], "no numbers but"),
    "unknown dtype": ([header(), entry("a", dtype=99)], "no numbers but type 99"),
    "reference": ([header(), entry("a", dtype=101)], "no numbers but type 101"),
    "name": ([header(), entry("a\nb")], "is not text"),
    "bytes": ([header(), (b"\xff\xfe", b"")], "is not text"),
    "negative dim": ([header(), entry("a", shape=(-2, -3))], "impossible shape"),
    "huge": ([header(), entry("a", shape=(2**62, 2**62))], "impossible shape"),
    "huge and empty": (
        [header(), entry("a", shape=(2**62, 2**62, 0), size=0)],
        "impossible shape",
    ),
    "rank": ([header(), entry("a", shape=[1] * 300, size=4)], "impossible shape"),
}


def test_hostile_tables(tmp_path):
    for rows, message in HOSTILE.values():
        assert_damaged(tmp_path, rows, message)


def assert_damaged(tmp_path, rows, message):
    prefix = write(tmp_path, table(rows))
    with pytest.raises(CheckpointError, match=message) as error:
        read_index(prefix)
    assert str(error.value).startswith(f"{prefix}.index is damaged: ")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


def test_index_too_large(tmp_path):
    prefix = write(tmp_path, b"")
    with pathlib.Path(f"{prefix}.index").open("wb") as file:
        file.truncate(2**40)  # Sparse: it takes no space.
    with pytest.raises(CheckpointError, match=f"{2**40} bytes"):
        read_index(prefix)


# === Snappy ===


def snappy_literal(data):
    size = len(data) - 1
    if size < 60:
        return bytes([size << 2]) + data
    return bytes([61 << 2]) + size.to_bytes(2, "little") + data


def snappy_copy(size, distance):
    if 4 <= size < 12 and distance < 2048:
        return bytes([distance >> 8 << 5 | (size - 4) << 2 | 1, distance & 255])
    return bytes([(size - 1) << 2 | 2]) + distance.to_bytes(2, "little")


@given(
    st.binary(min_size=1, max_size=300),
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 10**6)), max_size=20),
)
def test_snappy_copies(start, copies):
    plain, packed = bytearray(start), snappy_literal(start)
    for size, distance in copies:
        distance = min(distance, len(plain), 65535)
        packed += snappy_copy(size, distance)
        for _ in range(size):
            plain.append(plain[-distance])
    assert bundle_index._decompress(varint(len(plain)) + packed) == bytes(plain)


def test_compressed_table(tmp_path):
    def pack(data):
        return varint(len(data)) + snappy_literal(data) + b"\1"

    entries = read_index(write(tmp_path, table([header(), entry("a")], pack=pack)))
    assert list(entries) == ["a"]


HOSTILE_SNAPPY = [
    varint(5) + snappy_literal(b"abc"),
    varint(2) + snappy_literal(b"abc"),
    varint(9) + snappy_literal(b"abc") + snappy_copy(6, 4),
    varint(9) + snappy_literal(b"abc") + bytes([2, 0, 0]),
    varint(2**40) + snappy_literal(b"abc"),
    b"\xff" * 12,
    b"",
]


def test_hostile_snappy():
    for data in HOSTILE_SNAPPY:
        with pytest.raises(bundle_index._DamagedError):
            bundle_index._decompress(data)


# === Any bytes ===


def repaired(content, places):
    """The content with right checksums on its blocks, so that more is read."""
    content = bytearray(content)
    for offset, size in places:
        end = offset + size + 1
        if end + 4 <= len(content):
            crc = masked_crc32c(bytes(content[offset:end]))
            content[end : end + 4] = crc.to_bytes(4, "little")
    return bytes(content)


def block_places(content):
    body, footer = content[:-48], content[-48:-8]
    meta, position = bundle_index._handle(footer, 0)
    index, _ = bundle_index._handle(footer, position)
    rows = bundle_index._block_rows(bundle_index._block(body, *index))
    return [meta, index, *(bundle_index._handle(row, 0)[0] for _, row in rows)]


PLACES = block_places(INDEX)


def mutated(generator):
    content = bytearray(INDEX)
    for _ in range(generator.choice([1, 1, 2, 5])):
        position = generator.randrange(len(content))
        if generator.random() < 0.8:
            content[position] = generator.choice([0, 1, 127, 255, position % 256])
        else:
            del content[position : position + generator.randrange(1, 9)]
    return repaired(content, PLACES) if generator.random() < 0.7 else bytes(content)


LOAD = """
import sys
import tensorflow as tf

for prefix in sys.argv[1:]:
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except (ValueError, tf.errors.OpError, RuntimeError):
        pass
"""


@pytest.mark.slow
def test_what_passes_does_not_end_the_process(tmp_path):
    generator = random.Random(1)
    prefixes = []
    for number in range(2000):
        content = mutated(generator)
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "m.index").write_bytes(content)
        (directory / "m.data-00000-of-00001").symlink_to(DATA)
        try:
            read_index(directory / "m")
        except CheckpointError:
            continue
        if content != INDEX:
            prefixes.append(str(directory / "m"))
    assert len(prefixes) > 5
    command = [sys.executable, "-c", LOAD, *prefixes]
    assert subprocess.run(command, capture_output=True, timeout=300).returncode == 0
