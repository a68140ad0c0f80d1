"""Changes of valid files, as damage and strangers make them.

Each takes the content of a file and a random number generator, and knows the structure
of the file: the content of an archive is changed inside of it, and checksums are
computed again, so that readers get further than their first check.
"""

import copy
import gzip
import hashlib
import io
import json
import pathlib
import re
import struct
import zipfile
import zlib

import onnx
from archives import zipped
from google.protobuf.message import DecodeError

from albert_tf_lite.exported_model import SETTINGS, checksum_field

# Numbers in the place of another: of wrong types, sizes and signs.
NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63), 10**18, 10**30, 0.5, 1e308)
NUMBERS += (float("nan"), float("inf"))
# Values in the place of any other.
VALUES = (
    *NUMBERS,
    None,
    True,
    False,
    "",
    "x",
    "\ud800",
    "好\n\0",
    "../../x",
    "a" * 300,
)
VALUES += ([], {}, [[]], [None], {"x": {}}, [1, "2"], {"x": [1.5]})
# Bytes in the place of others: extreme sizes, and what other formats start with.
BYTES = (b"", b"\0" * 8, b"\xff" * 4, b"\xff" * 8, b"\x80", b"\xff\xff\xff\xff\x07")
BYTES += (struct.pack("<Q", 2**31), struct.pack("<Q", 2**40), b"\xff\xfe", b"\xef\xbb")
BYTES += (b"\n", b"\r", b"\t", b'"', b"[", b"{", b"]}", b"\\", b"\0", b"PK\x03\x04")
_DIGITS = re.compile(rb"-?\d+")
_NESTED = 3000


def mutate(content, random, kind=""):
    """Return a changed content of a file; `kind` is its suffix, or one of `_KINDS`."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        # A small share of the changes knows nothing of the structure.
        change = _KINDS.get(kind, mutate_bytes)
        if random.random() < 0.2:
            change = mutate_bytes
        content = change(content, random)
    return content


# === Bytes ===


def mutate_bytes(content, random):
    if not content:
        return random.choice(BYTES)
    change = random.choice(_BYTE_CHANGES)
    return change(content, random)


def _span(content, random):
    start = random.randrange(len(content))
    size = random.choice((1, 2, 4, 8, 64, len(content) // 4 + 1))
    return start, min(start + size, len(content))


def _flip(content, random):
    place = random.randrange(len(content))
    changed = bytearray(content)
    changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)


def _delete(content, random):
    start, end = _span(content, random)
    return content[:start] + content[end:]


def _duplicate(content, random):
    start, end = _span(content, random)
    return content[:end] + content[start:]


def _truncate(content, random):
    return content[: random.randrange(len(content))]


def _swap(content, random):
    (start, middle), (_, end) = sorted((_span(content, random), _span(content, random)))
    end = max(middle, end)
    return content[:start] + content[middle:end] + content[start:middle] + content[end:]


def _insert(content, random):
    place = random.randrange(len(content) + 1)
    return content[:place] + random.choice(BYTES) + content[place:]


def _overwrite(content, random):
    place, new = random.randrange(len(content)), random.choice(BYTES)
    return content[:place] + new + content[place + len(new) :]


def _renumber(content, random):
    """Replace a number, sometimes by one with as many digits."""
    found = list(_DIGITS.finditer(content))
    if not found:
        return _flip(content, random)
    number = random.choice(found)
    new = str(random.choice(NUMBERS)).encode()
    if random.random() < 0.5:
        new = random.choice((b"9", b"0")) * len(number[0])
    return content[: number.start()] + new + content[number.end() :]


_BYTE_CHANGES = (
    *(_flip, _delete, _duplicate, _truncate, _swap, _insert, _overwrite),
    *(_renumber, _renumber),
)

# === Text ===


def mutate_text(content, random):
    """Change lines and cells of a text."""
    text = content.decode("utf-8", "surrogateescape")
    lines = text.splitlines(keepends=True)
    if not lines or random.random() < 0.3:
        return mutate_bytes(content, random)
    place, other = random.randrange(len(lines)), random.randrange(len(lines))
    change = random.randrange(6)
    if change == 0:
        del lines[place]
    elif change == 1:
        lines.insert(place, lines[other])
    elif change == 2:
        lines[place], lines[other] = lines[other], lines[place]
    elif change == 3:
        lines[place] = lines[place].replace("\t", random.choice(("", ",", "\t\t")))
    elif change == 4:
        words = lines[place].split("\t")
        new = str(random.choice(VALUES)).encode("utf-8", "replace").decode()
        words[random.randrange(len(words))] = new
        lines[place] = "\t".join(words)
    else:
        lines[place] = lines[place] * 50
    return "".join(lines).encode("utf-8", "surrogateescape")


# === JSON ===


def mutate_json(content, random):
    """Change a value, a name or the nesting of a JSON document or of JSON lines."""
    try:
        document, is_lines = json.loads(content), False
    except RecursionError:
        return mutate_bytes(content, random)
    except ValueError:
        is_lines = True
        try:
            document = [json.loads(x) for x in content.split(b"\n") if x.strip()]
        except (ValueError, RecursionError):
            return mutate_bytes(content, random)
    changed = mutate_value(document, random)
    if is_lines and isinstance(changed, list):
        text = "\n".join(json.dumps(x, ensure_ascii=False) for x in changed) + "\n"
    else:
        text = json.dumps(changed, ensure_ascii=random.random() < 0.5)
    if random.random() < 0.05:
        text = text.replace("null", random.choice(("[", "{")) * _NESTED, 1)
    if random.random() < 0.03:
        text = "[" * _NESTED + text
    return text.encode("utf-8", "surrogatepass")


def mutate_value(document, random):
    """Return a copy of a JSON value with one change at a random place."""
    root = [copy.deepcopy(document)]
    places = list(_places(root))
    parent, key = random.choice(places)
    old = parent[key]
    change = random.randrange(10)
    if change == 0 and parent is not root:
        del parent[key]
    elif change == 1 and isinstance(parent, dict):
        parent[random.choice(("x", "", "class_name", "0"))] = parent.pop(key)
    elif change == 2 and isinstance(old, list):
        parent[key] = old * random.choice((0, 2, 100))
    elif change == 3:
        other_parent, other = random.choice(places)
        parent[key] = copy.deepcopy(other_parent[other])
    elif change == 4 and isinstance(old, str):
        changed = mutate_text(old.encode("utf-8", "replace"), random)
        parent[key] = changed.decode("utf-8", "replace")
    elif type(old) in (int, float):
        parent[key] = random.choice((*NUMBERS, *VALUES))
    else:
        parent[key] = random.choice(VALUES)
    return root[0]


def _places(value):
    """Yield the container and the key of each value at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from _places(inner)


# === Files in files ===


_NO_ZIP = (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, zlib.error)


def mutate_zip(content, random):
    """Change a member of a zip archive, or its directory."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {x: archive.read(x) for x in archive.namelist()}
    except _NO_ZIP:
        return mutate_bytes(content, random)
    if not members:
        return mutate_bytes(content, random)
    name = random.choice(sorted(members))
    change = random.randrange(10)
    if change == 0:
        del members[name]
    elif change == 1:
        members[random.choice(("x", "/x", "a\\b", f"{name}/x"))] = members.pop(name)
    elif change == 2:
        members[name] = members[random.choice(sorted(members))]
    else:
        members[name] = mutate(members[name], random, _kind_of(name))
    return zipped(members)


def mutate_gzip(content, random):
    try:
        inner = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return mutate_bytes(content, random)
    return gzip.compress(mutate_bytes(inner, random), mtime=0)


def mutate_safetensors(content, random):
    """Change the header, whose length is computed again."""
    (size,) = struct.unpack("<Q", content[:8].ljust(8, b"\0"))
    header = content[8 : 8 + size]
    change = mutate_json if random.random() < 0.7 else mutate_bytes
    changed = change(header, random)
    return struct.pack("<Q", len(changed)) + changed + content[8 + size :]


def mutate_tensor_index(content, random):
    """Change a block of the index of a TensorFlow checkpoint, with its checksum.

    The index is a table of LevelDB: blocks, each with a type and a CRC32C after it,
    and a footer of 48 bytes with the places of two blocks.
    """
    blocks = index_blocks(content)
    if not blocks or random.random() < 0.3:
        return mutate_bytes(content, random)
    start, size = random.choice(blocks)
    block = bytearray(content[start : start + size])
    for _ in range(random.choice((1, 1, 2, 4))):
        block[random.randrange(size)] = random.choice((0, 1, 127, 128, 255, 8, 10, 18))
    return with_block(content, start, block)


def with_block(content, start, block):
    """Return the index with another block of the same size, and its checksum."""
    end = start + len(block)
    # The type of the block has a checksum, too.
    block = bytes(block) + content[end : end + 1]
    checksum = struct.pack("<I", _masked_crc32c(block))
    return content[:start] + block + checksum + content[end + 5 :]


def index_blocks(content):
    """Return the start and the size of the blocks of data of a table of LevelDB."""
    try:
        footer, place = content[-48:], 0
        numbers = []
        for _ in range(4):
            number, place = _varint(footer, place)
            numbers.append(number)
        start, size = numbers[2:]
        block, place, handles = content[start : start + size], 0, []
        (restarts,) = struct.unpack("<I", block[-4:])
        while place < size - 4 * (restarts + 1):
            _, place = _varint(block, place)
            unshared, place = _varint(block, place)
            _, place = _varint(block, place)
            offset, after = _varint(block, place + unshared)
            length, place = _varint(block, after)
            handles.append((offset, length))
        ends = [offset + length + 5 <= len(content) for offset, length in handles]
        return handles if all(ends) and all(x[1] for x in handles) else []
    except (IndexError, struct.error):
        return []


def _varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place


def _crc_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_CRC = _crc_table()


def _masked_crc32c(data):
    value = 2**32 - 1
    for byte in data:
        value = value >> 8 ^ _CRC[(value ^ byte) & 255]
    value ^= 2**32 - 1
    return ((value >> 15 | value << 17) + 0xA282EAD8) % 2**32


def mutate_onnx(content, random):
    """Change the settings in an ONNX file, whose checksum is computed again."""
    try:
        model = onnx.load_from_string(content)
    except DecodeError:
        return mutate_bytes(content, random)
    texts = [x.value for x in model.metadata_props if x.key == SETTINGS]
    if not texts or random.random() < 0.3:
        return mutate_bytes(content, random)
    changed = mutate_json(texts[0].encode(), random).decode("utf-8", "replace")
    del model.metadata_props[:]
    onnx.helper.set_model_props(model, {SETTINGS: changed})
    content = model.SerializeToString()
    return content + checksum_field(hashlib.sha256(content).hexdigest())


def mutate_litert(content, random):
    """Change the settings behind the network of a LiteRT file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            settings = archive.read(SETTINGS)
            size = archive.infolist()[0].header_offset
    except (*_NO_ZIP, LookupError):
        return mutate_bytes(content, random)
    if random.random() < 0.3:
        return mutate_bytes(content, random)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SETTINGS, mutate_json(settings, random))
    return content[:size] + file.getvalue()


def _kind_of(name):
    return pathlib.PurePosixPath(name).suffix


_KINDS = {
    **dict.fromkeys((".json", ".jsonl", ".answers"), mutate_json),
    **dict.fromkeys((".txt", ".csv", ".tsv"), mutate_text),
    **dict.fromkeys((".zip", ".npz", ".xlsx", ".keras"), mutate_zip),
    ".gz": mutate_gzip,
    ".safetensors": mutate_safetensors,
    ".index": mutate_tensor_index,
    ".onnx": mutate_onnx,
    ".tflite": mutate_litert,
}
