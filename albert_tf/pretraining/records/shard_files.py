"""A shard: a directory of arrays of sequences, which are memory-mapped when read."""

import json
import pathlib
import zlib
from collections.abc import Iterable

import numpy as np

from albert_tf.files import complete_directory, write_json
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded

Arrays = dict[str, np.ndarray]

CHECKSUMS = "checksums.json"
# The arrays of a shard, and what their length counts.
ARRAYS = {
    "token_ids": "tokens",  # uint16 or uint32, of all sequences, without special tokens
    "word_starts": "bytes",  # uint8, a bit per token, 1 where a word begins
    "lengths": "sequences",  # uint16, tokens per sequence
    "second_starts": "sequences",  # uint16, index of the second segment's first token,
    # equal to the length of a sequence of one segment
    "documents": "sequences",  # uint32, number of the document within the shard
}
# Further arrays of records that already have labels or masks, as those of
# google-research/albert and albert_zh.
LABELS = {"labels": "sequences"}  # uint8, class of the order
MASKS = {
    "mask_counts": "sequences",  # uint16, predictions per sequence
    "mask_positions": "masks",  # uint16, in the sequence with its special tokens
    "mask_ids": "masks",  # as token_ids
}
# The arrays of a shard of labelled texts, whose `token_ids` have special tokens. It has
# one of `TARGETS`, too, unless it holds similar texts.
LABELLED_ARRAYS = ("token_ids", "lengths", "second_starts")
# Arrays of targets by task.
TARGETS = {
    "text-classification": "classes",  # uint16, number in the classes of its head
    "regression": "scores",  # float32
    "token-classification": "tags",  # int16, number in the tags of its head, or -1
    "question-answering": "spans",  # uint16 [sequences, 2], first and last token
}
_COUNTED = {
    **ARRAYS,
    **LABELS,
    **MASKS,
    "classes": "sequences",
    "scores": "sequences",
    "tags": "tokens",
    "spans": "sequences",
}


def token_dtype(vocabulary_size: int) -> str:
    """Return the type of token ids on disk."""
    return "uint16" if vocabulary_size <= 2**16 else "uint32"


def write_shard(folder: pathlib.Path, arrays: Arrays) -> None:
    """Write the arrays of a shard, by their names in `ARRAYS`, and their checksums.

    `word_starts` are bool [tokens], and written as bits.
    """
    if "word_starts" in arrays:
        arrays = {**arrays, "word_starts": np.packbits(arrays["word_starts"])}
    with complete_directory(folder) as temporary:
        for name, values in arrays.items():
            _write_array(temporary / f"{name}.npy", values)
        checksums = {name: _checksum(values) for name, values in arrays.items()}
        write_json(temporary / CHECKSUMS, checksums)


def _write_array(path: pathlib.Path, values: np.ndarray) -> None:
    """Write the file of `np.save`, but name the cause if the disk is full.

    NumPy reports how many values were written, and nothing for a small array.
    """
    values = np.ascontiguousarray(values)
    with open(path, "wb") as file:
        header = np.lib.format.header_data_from_array_1_0(values)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(values.data)


def read_shard(folder: pathlib.Path, needed: Iterable[str] = ARRAYS) -> Arrays:
    """Return the memory-mapped arrays of a shard; raise if it is damaged.

    `needed` are names of arrays without which it is.
    """
    try:
        checksums = json.loads((folder / CHECKSUMS).read_text("utf-8"))
        arrays = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in checksums
        }
        is_whole = _is_whole(arrays, checksums, set(needed))
    # NumPy raises errors of many classes, because headers are expressions of Python.
    except Exception:
        is_whole = False
    if not is_whole:
        check_downloaded(*folder.glob("*.npy"), *folder.glob(CHECKSUMS))
        raise AlbertError(
            f"{folder} is damaged. Copy it again, or remove it and make the records "
            "again."
        )
    return arrays


def _is_whole(arrays: Arrays, checksums: dict[str, int], needed: set[str]) -> bool:
    """Return whether no array is missing, damaged or of a wrong length."""
    if not needed <= arrays.keys():
        return False
    if any(_checksum(arrays[name]) != value for name, value in checksums.items()):
        return False
    tokens = int(np.sum(arrays["lengths"], dtype="int64"))
    lengths = {
        "sequences": len(arrays["lengths"]),
        "tokens": tokens,
        "bytes": -(-tokens // 8),
        "masks": int(np.sum(arrays.get("mask_counts", 0), dtype="int64")),
    }
    return all(
        len(values) == lengths[_COUNTED[name]] for name, values in arrays.items()
    )


def _checksum(values: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(values).data)
