"""Convert TFRecords of google-research/albert and albert_zh into flat arrays."""

import glob
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from albert_tf.files import file_digest, only_writer
from albert_tf.pretraining.corpus import printable
from albert_tf.pretraining.make_records import claim, publish
from albert_tf.pretraining.records import ORDERS, token_dtype
from albert_tf.pretraining.shards import FORMAT, complete_shard, load_tokens
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded

# All of these, or none.
_MASKS = "masked_lm_positions", "masked_lm_ids", "masked_lm_weights"
_FEATURES = "input_ids", "input_mask", "segment_ids", "next_sentence_labels"
# 1 where a word begins. Google's generator writes it, albert_zh's does not.
_WORD_STARTS = "token_boundary"
# Tokens per shard, and records that are parsed at once.
SHARD_TOKENS = 1_000_000
PARSED = 512


def find_tfrecords(
    files: str | os.PathLike | Iterable[str | os.PathLike],
) -> list[pathlib.Path]:
    """Return the files of paths and patterns if they are TFRecords, else none.

    They have a first record, or `tfrecord` in their names. Hidden and empty files are
    left out.
    """
    patterns = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    paths = set[pathlib.Path]()
    for pattern in map(str, patterns):
        is_path = os.path.lexists(pattern) or not glob.has_magic(pattern)
        found = [pattern] if is_path else glob.glob(pattern, recursive=True)
        paths |= {pathlib.Path(x) for x in found if os.path.isfile(x)}
    records = [x for x in sorted(paths) if _is_tfrecord(x)]
    if records and (others := paths - set(records)):
        raise AlbertError(
            f"{printable(records[0])} has TFRecords and {printable(min(others))} has "
            "not. Convert TFRecords and text into different directories."
        )
    return [x for x in records if x.name[0] != "." and x.stat().st_size]


def convert_records(
    files: str | os.PathLike | Iterable[str | os.PathLike],
    output: str | os.PathLike,
    vocabulary: str | os.PathLike,
    order: str = "sop",
    lowercase: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Convert TFRecords of sequences into records, as flat arrays.

    They are those of google-research/albert, albert_zh, or version 0.1.0 of `albert-tf
    pretrain-data` before its release. Labels and masks are kept. Words are known where
    the files have `token_boundary`; elsewhere each token is a word. To resume an
    interrupted run, start it again.

    Args:
        files: list of strings: paths and patterns such as `"records/*.tfrecord"`.
        output: string, the directory to write, as by `make_pretraining_data`.
        vocabulary: string, path of the `vocab.txt` or SentencePiece model that the
            files were made with.
        order: string, the meaning of the labels: `"sop"`, `"nsp"`, `"three_way"` or
            `"none"`.
        lowercase: bool. Whether the text was lower-cased.
        progress: optional callable that receives the bytes done and their total.

    Returns:
        The manifest, a dict, as by `make_pretraining_data`.

    Raises:
        FileNotFoundError: if there are no TFRecords.
        AlbertError: if a file is damaged, has another sequence length or vocabulary, or
            the directory holds other records.
        OSError: if a shard cannot be written, or another process writes to the
            directory.

    Example:
    ```python
    albert_tf.pretraining.convert_records(
        "old/*.tfrecord", "records", "albert_tiny_zh/vocab.txt"
    )
    ```

    Reference:
        google-research/albert and brightmart/albert_zh, `create_pretraining_data.py`.
    """
    if order not in ORDERS:
        raise AlbertError(f"Unknown order {order!r}. Known: {list(ORDERS)}")
    output, vocabulary = pathlib.Path(output), pathlib.Path(vocabulary).resolve()
    paths = find_tfrecords(files)
    if not paths:
        raise FileNotFoundError(f"There are no TFRecords in {files}.")
    check_downloaded(*paths)
    _, tokens = load_tokens(str(vocabulary), lowercase)
    lengths = _feature_lengths(paths[0])
    config = {
        "format": FORMAT,
        "order": order,
        "lowercase": lowercase,
        "sequence_length": lengths["input_ids"],
        "vocabulary_sha256": file_digest(vocabulary),
    }
    header = {
        "files": [printable(x.resolve()) for x in paths],
        "settings": config,
        "vocabulary": vocabulary.name,
        "tokens": tokens,
    }
    output.mkdir(parents=True, exist_ok=True)
    with only_writer(output):
        claim(output, header, vocabulary)
        total, done = sum(x.stat().st_size for x in paths), 0
        shards: list[dict[str, Any]] = []
        parts: list[dict[str, np.ndarray]] = []
        for path in paths:
            for features in _parsed(path, lengths):
                parts.append(_arrays(path, features, tokens, order))
                if sum(len(x["token_ids"]) for x in parts) >= SHARD_TOKENS:
                    shards += _shard(output, len(shards), config, parts)
                    parts = []
            done += path.stat().st_size
            if progress is not None:
                progress(done, total)
        if parts:
            shards += _shard(output, len(shards), config, parts)
        return publish(output, header, shards, {})


def _is_tfrecord(path: pathlib.Path) -> bool:
    if re.search("tf_?record", path.name):
        return True
    import tensorflow as tf

    try:
        # It compares the checksum of the first length.
        next(iter(tf.data.TFRecordDataset(str(path))))
    except (tf.errors.OpError, StopIteration):
        return False
    return True


def _feature_lengths(path: pathlib.Path) -> dict[str, int]:
    """Return the values per feature in the first record of a file."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        first = next(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
        features = tf.train.Example.FromString(first).features.feature
    except (tf.errors.OpError, DecodeError, StopIteration) as error:
        raise AlbertError(
            f"{path} cannot be read as TFRecords of tf.train.Example. Copy it again, "
            "or remove it."
        ) from error
    needed = {*_FEATURES, *(_MASKS if {*_MASKS} & {*features} else ())}
    if missing := needed - {*features}:
        raise AlbertError(
            f"The records of {path} lack {sorted(missing)}. Expected records of "
            "`albert-tf pretrain-data`, google-research/albert or albert_zh."
        )
    return {
        name: len(x.int64_list.value or x.float_list.value)
        for name, x in features.items()
        if name in {*needed, _WORD_STARTS}
    }


def _parsed(
    path: pathlib.Path, lengths: dict[str, int]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the features [records, values] of some records at a time."""
    import tensorflow as tf

    kinds = {
        name: tf.io.FixedLenFeature(
            [length], tf.float32 if name == "masked_lm_weights" else tf.int64
        )
        for name, length in lengths.items()
    }
    damaged = AlbertError(
        f"{path} is damaged, or its records differ from those of the other files. Copy "
        "it again, or remove it."
    )
    size = 0
    try:
        for serialized in tf.data.TFRecordDataset(str(path)).batch(PARSED):
            parsed = tf.io.parse_example(serialized, kinds)
            yield {name: x.numpy() for name, x in parsed.items()}
            # A length and two checksums are beside each record.
            size += sum(16 + len(x) for x in serialized.numpy())
    except tf.errors.OpError as error:
        raise damaged from error
    # TensorFlow ignores a file that is cut off within a length.
    if size != path.stat().st_size:
        raise damaged


def _arrays(
    path: pathlib.Path,
    features: dict[str, np.ndarray],
    tokens: dict[str, int],
    order: str,
) -> dict[str, np.ndarray]:
    """Return the arrays of a shard, without the numbers of documents."""
    ids, labels = features["input_ids"], features["next_sentence_labels"][:, 0]
    is_used, is_second = features["input_mask"] > 0, features["segment_ids"] > 0
    used = is_used.sum(1, keepdims=True)
    # The length of `[CLS] first [SEP]`.
    first = used - (is_second & is_used).sum(1, keepdims=True)
    position = np.arange(ids.shape[1])
    is_sep = (position == first - 1) | (position == used - 1)
    is_text = is_used & ~is_sep & (position > 0)
    is_valid = (
        (is_used == (position < used))
        & ((is_second & is_used) == ((position >= first) & is_used))
        & (~is_sep | (ids == tokens["sep"]))
        & ((position > 0) | (ids == tokens["cls"]))
        & (ids >= 0)
        & (ids < tokens["size"])
    )
    if not is_valid.all() or first.min(initial=2) < 2:
        raise AlbertError(
            f"{path} has other sequences than [CLS] text [SEP] text [SEP] in tokens of "
            "the vocabulary. Pass the vocabulary that the file was made with."
        )
    starts = (position == 1) | (position == first)
    starts = starts | (features.get(_WORD_STARTS, np.ones_like(ids)) > 0)
    dtype = token_dtype(tokens["size"])
    arrays = {
        "token_ids": ids[is_text].astype(dtype),
        "word_starts": starts[is_text],
        "lengths": is_text.sum(1).astype("uint16"),
        "second_starts": (first[:, 0] - 2).astype("uint16"),
    }
    if classes := len(ORDERS[order]):
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
            raise AlbertError(
                f"{path} has the label {labels.max()}, but the order {order!r} has "
                f"{classes} classes. Choose another order."
            )
        arrays["labels"] = labels.astype("uint8")
    if _MASKS[0] in features:
        positions, mask_ids, weights = (features[name] for name in _MASKS)
        is_mask = weights > 0
        arrays["mask_counts"] = is_mask.sum(1).astype("uint16")
        arrays["mask_positions"] = positions[is_mask].astype("uint16")
        arrays["mask_ids"] = mask_ids[is_mask].astype(dtype)
    return arrays


def _shard(
    output: pathlib.Path,
    number: int,
    config: dict[str, Any],
    parts: list[dict[str, np.ndarray]],
) -> list[dict[str, Any]]:
    """Write the shard of some arrays, which is named by their content."""
    arrays = {name: np.concatenate([x[name] for x in parts]) for name in parts[0]}
    # Nothing in the files tells which sequences share a document.
    arrays["documents"] = np.arange(len(arrays["lengths"]), dtype="uint32")
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for values in arrays.values():
        digest.update(values.tobytes())
    name = f"pretrain-{number:05d}-00-{digest.hexdigest()[:16]}"
    return complete_shard(output / name, lambda: arrays)
