"""Read and write TFRecords of sequences with the feature names of the original code.

Our records hold unmasked token ids and where words begin; masked records also hold the
predictions. Masked files of google-research/albert and brightmart/albert_zh can be
read, and their `run_pretraining.py` can read ours.
"""

import json
import os
import pathlib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf_lite.errors import AlbertError

MANIFEST = "manifest.json"
# Only versions before 0.2 wrote this file.
_OLD_JOURNAL = "progress.jsonl"
# Our name of a feature, and its name in the records.
FEATURES = {
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
    "segment_ids": "segment_ids",
    "labels": "next_sentence_labels",
}
# 1 where a word begins. Google's generator writes it, albert_zh's does not.
WORD_STARTS = {"word_starts": "token_boundary"}
# All of these, or none.
MASK_FEATURES = {
    "mask_positions": "masked_lm_positions",
    "mask_ids": "masked_lm_ids",
    "mask_weights": "masked_lm_weights",
}
_ALL = {**FEATURES, **WORD_STARTS, **MASK_FEATURES}
_FLOATS = {"masked_lm_weights"}


def write_records(path: str | os.PathLike, arrays: dict[str, np.ndarray]) -> None:
    """Write a file of records.

    Args:
        path: string or path.
        arrays: dict with the keys of `FEATURES`, and optionally of `WORD_STARTS` and
            `MASK_FEATURES`: arrays with one row per record.
    """
    columns = {_ALL[key]: np.asarray(values) for key, values in arrays.items()}
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in range(len(arrays["labels"])):
            features = {
                name: _feature(name, np.ravel(values[row]))
                for name, values in columns.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            # Equal features are written as equal bytes.
            writer.write(example.SerializeToString(deterministic=True))


def _feature(name: str, values: np.ndarray) -> tf.train.Feature:
    if name in _FLOATS:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    # Lists are converted faster than arrays.
    numbers = values.astype("int64").tolist()
    return tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))


def record_lengths(path: str | os.PathLike) -> dict[str, int]:
    """Return the number of values of each feature in the first record of a file.

    Returns:
        A dict of feature name to int; empty if the file is.

    Raises:
        AlbertError: if the file is not a TFRecord file, or its records lack a feature
            that pretraining reads.
    """
    try:
        first: Any = next(iter(tf.data.TFRecordDataset(str(path)).take(1)), None)
        # A file truncated within its first record yields none.
        if first is None and os.path.getsize(path) == 0:
            return {}
        features = tf.train.Example.FromString(first.numpy()).features.feature
    except (tf.errors.OpError, DecodeError, AttributeError) as error:
        raise AlbertError(
            f"{path} cannot be read as TFRecords of tf.train.Example: it is damaged or "
            f"of another format. ({str(error).splitlines()[0]})"
        ) from error
    lengths = {
        name: len(getattr(feature, feature.WhichOneof("kind")).value)
        for name, feature in features.items()
        if feature.WhichOneof("kind")
    }
    needed = dict(FEATURES)
    if any(name in lengths for name in MASK_FEATURES.values()):
        needed.update(MASK_FEATURES)
    missing = [name for name in needed.values() if name not in lengths]
    if missing:
        raise AlbertError(
            f"The records of {path} lack {missing}. Expected records of "
            "`albert-tf pretrain-data`, google-research/albert or albert_zh. Found: "
            f"{sorted(lengths)}"
        )
    return lengths


def count_records(
    path: str | os.PathLike, lengths: dict[str, int] | None = None
) -> int:
    """Read a file to its end, checking the checksum of each record.

    Args:
        path: string or path.
        lengths: optional dict of `record_lengths`. Records are also parsed.

    Returns:
        The number of records.

    Raises:
        AlbertError: if the file is damaged, or a record does not have these lengths.
    """
    records = tf.data.TFRecordDataset(str(path)).batch(256)
    if lengths is not None:
        records = records.map(
            lambda serialized: parse_records(serialized, lengths)["labels"],
            num_parallel_calls=tf.data.AUTOTUNE,
        )
    try:
        count = records.reduce(0, lambda count, batch: count + tf.shape(batch)[0])
    except tf.errors.OpError as error:
        # Without the names of graph nodes.
        reason = re.sub(r"{{.*?}} | \[Op:.*", "", error.message.split("\n")[0])
        raise AlbertError(
            f"{path} is damaged, or its records differ from those of the other files "
            f"({reason}). Copy it again, or remove it and rebuild the records."
        ) from error
    return int(count)


def parse_records(
    serialized: Iterable[tf.Tensor] | tf.Tensor, lengths: dict[str, int]
) -> dict[str, tf.Tensor]:
    """Parse serialized records [batch] with the lengths of `record_lengths`.

    Returns:
        A dict with the keys of `FEATURES`, and of `WORD_STARTS` and `MASK_FEATURES` if
        the records have them: int32 or float32 tensors [batch, values], `labels`
        [batch].
    """
    kept = {key: name for key, name in _ALL.items() if name in lengths}
    parsed = tf.io.parse_example(
        serialized,
        {
            name: tf.io.FixedLenFeature(
                [lengths[name]], tf.float32 if name in _FLOATS else tf.int64
            )
            for name in kept.values()
        },
    )
    batch = {
        key: parsed[name] if name in _FLOATS else tf.cast(parsed[name], tf.int32)
        for key, name in kept.items()
    }
    return {**batch, "labels": batch["labels"][:, 0]}


def find_records(folder: pathlib.Path, pattern: str) -> list[pathlib.Path]:
    """Return the matching files of a folder whose names are those of record files."""
    found = [file for file in folder.glob(pattern) if file.is_file()]
    return sorted(x for x in found if "tfrecord" in x.name and x.name[0] != ".")


def read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    """Return the manifest of `make_pretraining_data`; an empty dict without one.

    While the records are being made, it has no `shards`.

    Raises:
        AlbertError: if it is damaged or was written by an older version.
    """
    file = folder / MANIFEST
    if (folder / _OLD_JOURNAL).exists():
        raise AlbertError(
            f"{folder} holds records of an older version of albert-tf. Make them again "
            "with `albert-tf pretrain-data` and another --output."
        )
    if not file.exists():
        return {}
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        for shard in manifest.get("shards", []):
            shard["file"], shard["bytes"], shard["records"]
        manifest["files"], manifest["settings"], manifest["vocabulary"]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise AlbertError(
            f"{file} is damaged or was not written by `albert-tf pretrain-data` "
            f"({error!r}). Copy the directory again, or choose another directory."
        ) from error
    return manifest


def unmask(
    batch: dict[str, tf.Tensor], plain_ids: list[int] | None = None
) -> tf.Tensor:
    """Return the token ids [batch, time] of a parsed batch without its masks.

    `plain_ids` maps labels to tokens; without it labels are tokens.
    """
    labels = batch["mask_ids"]
    if plain_ids is not None:
        labels = tf.gather(plain_ids, labels)
    is_predicted = batch["mask_weights"] > 0
    where = tf.where(is_predicted)
    positions = tf.boolean_mask(batch["mask_positions"], is_predicted)
    return tf.tensor_scatter_nd_update(
        batch["token_ids"],
        tf.stack([where[:, 0], tf.cast(positions, tf.int64)], axis=1),
        tf.boolean_mask(labels, is_predicted),
    )
