"""Read and write TFRecords of sequences with the feature names of the original code.

Our records hold unmasked token ids and where words begin; masked records also hold the
predictions. Masked files of google-research/albert and brightmart/albert_zh can be
read, and their `run_pretraining.py` can read ours.
"""

import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf_lite.errors import AlbertError

MANIFEST = "manifest.json"
# All of these, or none.
MASKS = {
    "mask_positions": "masked_lm_positions",
    "mask_ids": "masked_lm_ids",
    "mask_weights": "masked_lm_weights",
}
# Our name of a feature, and its name in the records.
FEATURES = {
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
    "segment_ids": "segment_ids",
    "labels": "next_sentence_labels",
    # 1 where a word begins. Google's generator writes it, albert_zh's does not.
    "word_starts": "token_boundary",
    **MASKS,
}


def write_records(path: str | os.PathLike, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays, by our names of the features and with one row per record."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in range(len(arrays["labels"])):
            example = tf.train.Example()
            for key, values in arrays.items():
                feature = example.features.feature[FEATURES[key]]
                numbers = np.ravel(values[row])
                if key == "mask_weights":
                    feature.float_list.value.extend(numbers)
                else:
                    # Lists are converted faster than arrays.
                    feature.int64_list.value.extend(numbers.astype("int64").tolist())
            # Equal features are written as equal bytes.
            writer.write(example.SerializeToString(deterministic=True))


def record_lengths(path: str | os.PathLike) -> dict[str, int]:
    """Return the values per feature in the first record of a file, by our names."""
    try:
        first: Any = next(iter(tf.data.TFRecordDataset(str(path))))
        features = tf.train.Example.FromString(first.numpy()).features.feature
    except (tf.errors.OpError, DecodeError, StopIteration) as error:
        raise AlbertError(
            f"{path} cannot be read as TFRecords of tf.train.Example. Copy it again, "
            "or remove it."
        ) from error
    lengths = {
        key: len(features[name].int64_list.value or features[name].float_list.value)
        for key, name in FEATURES.items()
        if name in features
    }
    optional = {"word_starts"} if MASKS.keys() & lengths else {"word_starts", *MASKS}
    if missing := FEATURES.keys() - optional - lengths.keys():
        raise AlbertError(
            f"The records of {path} lack {sorted(FEATURES[key] for key in missing)}. "
            "Expected records of `albert-tf pretrain-data`, google-research/albert or "
            "albert_zh."
        )
    return lengths


def count_records(
    path: str | os.PathLike, lengths: dict[str, int] | None = None
) -> int | None:
    """Count the records of a file; `None` if it is damaged or has other `lengths`."""
    records = tf.data.TFRecordDataset(str(path)).batch(256)
    if lengths is not None:
        records = records.map(
            lambda serialized: parse_records(serialized, lengths)["labels"],
            num_parallel_calls=tf.data.AUTOTUNE,
        )
    try:
        return int(records.reduce(0, lambda count, batch: count + tf.shape(batch)[0]))
    except tf.errors.OpError:
        return None


def parse_records(
    serialized: Iterable[tf.Tensor] | tf.Tensor, lengths: dict[str, int]
) -> dict[str, tf.Tensor]:
    """Parse serialized records [batch], by our names of the features."""
    features = {
        FEATURES[key]: tf.io.FixedLenFeature(
            [length], tf.float32 if key == "mask_weights" else tf.int64
        )
        for key, length in lengths.items()
    }
    parsed = tf.io.parse_example(serialized, features)
    batch = {key: parsed[FEATURES[key]] for key in lengths}
    batch = {
        key: tf.cast(x, tf.int32) if x.dtype == tf.int64 else x
        for key, x in batch.items()
    }
    return {**batch, "labels": batch["labels"][:, 0]}


def read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    """Return the manifest of `make_pretraining_data`; an empty dict without one.

    While the records are being made, it has no `shards`.
    """
    file = folder / MANIFEST
    if not file.exists():
        return {}
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        for shard in manifest.get("shards", []):
            shard["file"], shard["records"]
        manifest["files"], manifest["settings"], manifest["vocabulary"]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise AlbertError(
            f"{file} is damaged or was not written by `albert-tf pretrain-data`. Copy "
            "the directory again, or choose another directory."
        ) from error
    return manifest


def unmask(
    batch: dict[str, tf.Tensor], plain_ids: list[int] | None = None
) -> tf.Tensor:
    """Return the token ids of a parsed batch without its masks.

    `plain_ids` maps labels to tokens; by default labels are tokens.
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
