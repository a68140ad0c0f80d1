"""Write arrays of token ids as records."""

import hashlib
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from albert_tf.files import file_digest
from albert_tf.pretraining.records.corpus_files import printable
from albert_tf.pretraining.records.records_directory import (
    Header,
    Manifest,
    Shard,
    claim,
    complete_shard,
    publish,
    shard_name,
)
from albert_tf.pretraining.records.segment_pairs import ORDERS
from albert_tf.pretraining.records.shard_files import (
    LABELS,
    MASKS,
    Arrays,
    token_dtype,
)
from albert_tf.pretraining.records.shard_maker import FORMAT, load_tokens
from albert_tf_lite.errors import AlbertError

_NEEDED = ("token_ids", "word_starts", "lengths", "second_starts")
# Types on disk of the arrays without token ids.
_TYPES = {
    "word_starts": "bool",
    "lengths": "uint16",
    "second_starts": "uint16",
    "documents": "uint32",
    "labels": "uint8",
    "mask_counts": "uint16",
    "mask_positions": "uint16",
}


def write_records(
    parts: Iterable[Arrays],
    output: str | os.PathLike,
    vocabulary: str | os.PathLike,
    sequence_length: int,
    order: str = "sop",
    lowercase: bool = True,
    sources: Iterable[str | os.PathLike] = (),
) -> Manifest:
    """Write sequences of token ids as records, for example those of another format.

    Each part becomes a shard. To resume an interrupted run, start it again with the
    same arguments; complete shards are kept.

    Args:
        parts: iterable of dicts of arrays of some sequences:

            - `token_ids`: int array [tokens], of all sequences, without special tokens.
            - `word_starts`: bool array [tokens], true where a word begins.
            - `lengths`: int array [sequences], tokens per sequence.
            - `second_starts`: int array [sequences], index of the second segment's
              first token; the length of a sequence of one segment.
            - `documents`: optional int array [sequences], number of the document. By
              default each sequence is one.
            - `labels`: int array [sequences], class of the order, or without it the
              second segment is drawn when a sequence is read.
            - `mask_counts` [sequences], `mask_positions` and `mask_ids` [masks]:
              optional int arrays, masks per sequence, their positions in the sequence
              with its special tokens, and the ids that they hide.
        output: string, the directory to write, as by `make_pretraining_data`.
        vocabulary: string, path of the `vocab.txt` or SentencePiece model of the ids.
        sequence_length: int. Maximum number of tokens per sequence, with special ones.
        order: string, the meaning of the labels: `"sop"`, `"nsp"`, `"three_way"` or
            `"none"`.
        lowercase: bool. Whether the text was lower-cased.
        sources: optional list of strings, the paths that the arrays were made from.
            Records of other sources are not overwritten.

    Returns:
        The manifest, a dict, as by `make_pretraining_data`.

    Raises:
        AlbertError: if arrays do not fit each other, the vocabulary or the order, or
            the directory holds other records.
        OSError: if a shard cannot be written, or another process writes to the
            directory.

    Example:
    ```python
    part = {
        "token_ids": np.array([10, 11, 12, 13, 14]),
        "word_starts": np.array([True, True, False, True, True]),
        "lengths": np.array([5]),
        "second_starts": np.array([3]),
    }
    albert_tf.pretraining.write_records(
        [part], "records", "examples/albert_micro_zh/vocab.txt", sequence_length=16
    )
    ```
    """
    if order not in ORDERS:
        raise AlbertError(f"Unknown order {order!r}. Known: {list(ORDERS)}")
    output, vocabulary = pathlib.Path(output), pathlib.Path(vocabulary).resolve()
    _, tokens = load_tokens(str(vocabulary), lowercase)
    config = {
        "format": FORMAT,
        "order": order,
        "lowercase": lowercase,
        "sequence_length": sequence_length,
        "vocabulary_sha256": file_digest(vocabulary),
    }
    files = [printable(pathlib.Path(source).resolve()) for source in sources]
    header = Header(vocabulary, tokens, config, files)
    with claim(output, header):
        shards: list[Shard] = []
        for number, part in enumerate(parts):
            shards += _write_part(part, number, output, header)
        if not shards:
            raise AlbertError("There are no sequences to write.")
        return publish(output, header, shards)


def _write_part(
    part: Arrays, number: int, output: pathlib.Path, header: Header
) -> list[Shard]:
    """Write a part as a shard, which is named by its content."""
    size = header.tokens["size"]
    _check_part(part, f"Part {number}", header.settings, size)
    arrays = _as_stored(part, size)
    digest = _digest(header.settings, arrays)
    return complete_shard(output / shard_name(number, 0, digest), lambda: arrays)


def _check_part(part: Arrays, name: str, config: dict[str, Any], size: int) -> None:
    """Raise if arrays do not fit each other, the vocabulary or the settings."""
    known = {*_NEEDED, "documents", *LABELS, *MASKS}
    if missing := {*_NEEDED} - {*part}:
        raise AlbertError(f"{name} lacks the arrays {sorted(missing)}.")
    if unknown := {*part} - known:
        raise AlbertError(
            f"{name} has the unknown arrays {sorted(unknown)}. Known: {sorted(known)}."
        )
    if {*MASKS} & {*part} and not {*MASKS} <= {*part}:
        raise AlbertError(f"{name} has a part of the arrays {list(MASKS)} only.")
    _check_counts(part, name)
    _check_values(part, name, config, size)


def _check_counts(part: Arrays, name: str) -> None:
    """Raise if an array has another length than the sequences, tokens or masks."""
    sequences, tokens = len(part["lengths"]), int(np.sum(part["lengths"]))
    masks = int(np.sum(part.get("mask_counts", 0)))
    expected = {
        "token_ids": tokens,
        "word_starts": tokens,
        "second_starts": sequences,
        "documents": sequences,
        "labels": sequences,
        "mask_counts": sequences,
        "mask_positions": masks,
        "mask_ids": masks,
    }
    for array, count in expected.items():
        if array in part and len(part[array]) != count:
            raise AlbertError(
                f"{name}: `{array}` has {len(part[array])} values. By `lengths` and "
                f"`mask_counts` they must be {count}."
            )


def _check_values(part: Arrays, name: str, config: dict[str, Any], size: int) -> None:
    """Raise if a value is outside the vocabulary, the sequence or the classes."""
    lengths, starts = np.asarray(part["lengths"]), np.asarray(part["second_starts"])
    # [CLS] and [SEP], and a second [SEP] after a second segment.
    longest = np.max(lengths + 2 + (starts < lengths), initial=0)
    sequence_length = config["sequence_length"]
    if longest > sequence_length:
        raise AlbertError(
            f"{name} has a sequence of {longest} tokens with special ones, more than "
            f"`sequence_length`: {sequence_length}."
        )
    classes = len(ORDERS[config["order"]])
    if "labels" in part and not classes:
        raise AlbertError(f"{name} has labels, which the order 'none' has not.")
    limits = {
        "token_ids": size,
        "mask_ids": size,
        "mask_positions": sequence_length,
        "second_starts": int(np.max(lengths, initial=0)) + 1,
        "labels": classes,
    }
    for array, limit in limits.items():
        values = np.asarray(part.get(array, ()))
        if values.size and (values.min() < 0 or values.max() >= limit):
            raise AlbertError(
                f"{name}: `{array}` has values from {values.min()} to {values.max()}, "
                f"outside 0 to {limit - 1}. Check the vocabulary and the order."
            )
    if np.any(starts > lengths):
        raise AlbertError(f"{name}: `second_starts` is larger than `lengths`.")


def _as_stored(part: Arrays, size: int) -> Arrays:
    """Return arrays with their types on disk, and the numbers of documents."""
    id_type = token_dtype(size)
    types = {**_TYPES, "token_ids": id_type, "mask_ids": id_type}
    arrays = {
        name: np.asarray(values).astype(types[name]) for name, values in part.items()
    }
    if "documents" not in arrays:
        arrays["documents"] = np.arange(len(arrays["lengths"]), dtype="uint32")
    return arrays


def _digest(config: dict[str, Any], arrays: Arrays) -> str:
    """Return the part of a shard's name that depends on its content."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + arrays[name].tobytes())
    return digest.hexdigest()[:16]
