"""Records: the sequences of a corpus as flat arrays on disk.

A directory of records has a manifest, the vocabulary and shards. A shard is a directory
of `.npy` files, which are memory-mapped. It gets its final name when it is complete.
"""

import json
import os
import pathlib
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from albert_tf.files import complete_directory, write_json
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded

# The second segment by label, drawn with equal probability: "next" follows the first,
# "previous" precedes it, "other" is from another document.
ORDERS = {
    "sop": ("next", "previous"),  # ALBERT
    "nsp": ("next", "other"),  # BERT
    "three_way": ("next", "previous", "other"),  # StructBERT
    "none": (),  # RoBERTa: one segment without a label
}
MANIFEST = "manifest.json"
CHECKSUMS = "checksums.json"
SHARDS = f"pretrain-*-{16 * '[0-9a-f]'}"
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
# Arrays of labelled texts by task. A shard of such texts has one of them, `token_ids`
# with special tokens, `lengths` and `second_starts`.
TARGETS = {
    "text-classification": "classes",  # uint16, number in the classes of its head
    "regression": "scores",  # float32
    "token-classification": "tags",  # int16, number in the tags of its head, or -1
    "question-answering": "spans",  # uint16 [sequences, 2], first and last token
}
_TARGET_LENGTHS = {**dict.fromkeys(TARGETS.values(), "sequences"), "tags": "tokens"}


def token_dtype(vocabulary_size: int) -> str:
    """Return the type of token ids on disk."""
    return "uint16" if vocabulary_size <= 2**16 else "uint32"


def write_shard(folder: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
    """Write the arrays of a shard, by their names in `ARRAYS`, and their checksums.

    `word_starts` are bool [tokens], and written as bits.
    """
    if "word_starts" in arrays:
        arrays = {**arrays, "word_starts": np.packbits(arrays["word_starts"])}
    with complete_directory(folder) as temporary:
        for name, values in arrays.items():
            np.save(temporary / f"{name}.npy", values, allow_pickle=False)
        sums = {x: zlib.crc32(np.ascontiguousarray(y).data) for x, y in arrays.items()}
        write_json(temporary / CHECKSUMS, sums)


def read_shard(
    folder: pathlib.Path, needed: Iterable[str] = ARRAYS
) -> dict[str, np.ndarray]:
    """Return the memory-mapped arrays of a shard; raise if it is damaged.

    `needed` are names of arrays without which it is.
    """
    try:
        sums = json.loads((folder / CHECKSUMS).read_text("utf-8"))
        arrays = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in sums
        }
        is_whole = all(zlib.crc32(arrays[x]) == y for x, y in sums.items())
        tokens = int(np.sum(arrays["lengths"], dtype="int64"))
        counts = {
            "sequences": len(arrays["lengths"]),
            "tokens": tokens,
            "bytes": -(-tokens // 8),
            "masks": int(np.sum(arrays.get("mask_counts", 0), dtype="int64")),
        }
        kinds = {**ARRAYS, **LABELS, **MASKS, **_TARGET_LENGTHS}
        is_whole &= {*needed} <= {*arrays}
        is_whole &= all(len(y) == counts[kinds[x]] for x, y in arrays.items())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        check_downloaded(*folder.glob("*.npy"), *folder.glob(CHECKSUMS))
        raise AlbertError(
            f"{folder} is damaged. Copy it again, or remove it and make the records "
            "again."
        )
    return arrays


def read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    """Return the manifest of records; an empty dict without one.

    While the records are being made, it has no `shards`.
    """
    file = folder / MANIFEST
    if not file.exists():
        return {}
    check_downloaded(file)
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        for shard in manifest.get("shards", []):
            shard["name"], shard["sequences"]
        manifest["files"], manifest["settings"], manifest["vocabulary"]
        manifest["tokens"]["size"], manifest["tokens"]["mask"]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise AlbertError(
            f"{file} is damaged, or was not written by this version of `albert-tf "
            "pretrain-data`. Copy the directory again, or choose another directory."
        ) from error
    return manifest


class Records:
    """Base class of open records: a directory with a manifest, vocabulary and shards.

    Args:
        path: string, the directory.

    Attributes:
        folder: `pathlib.Path`.
        manifest: dict, empty without one.
    """

    def __init__(self, path: str | os.PathLike):
        self.folder = pathlib.Path(path)
        self.manifest = read_manifest(self.folder)

    def read_shards(self, needed: Iterable[str] = ARRAYS) -> list[dict[str, Any]]:
        """Return the arrays of all shards; raise if they are incomplete or damaged."""
        if "shards" not in self.manifest:
            raise AlbertError(
                f"{self.folder} holds only a part of its records: `albert-tf "
                "pretrain-data` was interrupted. Run the same command again to resume."
            )
        shards = []
        for entry in self.manifest["shards"]:
            folder = self.folder / entry["name"]
            if not folder.is_dir():
                raise FileNotFoundError(f"{folder} is missing. Copy the records again.")
            arrays = read_shard(folder, needed)
            if len(arrays["lengths"]) != entry["sequences"]:
                raise AlbertError(f"{folder} is not of these records. Copy them again.")
            shards.append(arrays)
        return shards

    @property
    def sequence_length(self) -> int:
        """Maximum number of tokens per sequence, with special tokens."""
        return self.manifest["settings"]["sequence_length"]

    @property
    def tokens(self) -> dict[str, int]:
        """The `size` of the vocabulary, and the ids `cls`, `sep`, `pad` and `mask`."""
        return self.manifest["tokens"]

    @property
    def vocabulary(self) -> pathlib.Path:
        """The path of the vocabulary."""
        path = self.folder / self.manifest["vocabulary"]
        if path.is_file():
            check_downloaded(path)
        return path
