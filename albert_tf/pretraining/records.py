"""TFRecords of masked sequences, with the feature names of the original code.

Files made by google-research/albert and brightmart/albert_zh are read, and ours by
their `run_pretraining.py`.
"""

import pathlib

import numpy as np
import tensorflow as tf

# What we call a feature, its name in the records, and whether it is a float.
FEATURES = {
    "token_ids": ("input_ids", False),
    "padding_mask": ("input_mask", False),
    "segment_ids": ("segment_ids", False),
    "mask_positions": ("masked_lm_positions", False),
    "mask_ids": ("masked_lm_ids", False),
    "mask_weights": ("masked_lm_weights", True),
    "labels": ("next_sentence_labels", False),
}
# Google's generator writes it, too: 1 where a word begins. Without it a sequence can
# be masked anew by single tokens only.
WORD_STARTS = "token_boundary"


def write_records(path, arrays):
    """Write a file of records.

    Args:
        path: string, the file.
        arrays: dict with the keys of `FEATURES` and `"word_starts"`: arrays with a row
            a record.
    """
    columns = [
        (name, np.asarray(arrays[key]), is_float)
        for key, (name, is_float) in _WRITTEN.items()
    ]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in range(len(arrays["labels"])):
            features = {
                name: _feature(np.ravel(values[row]), is_float)
                for name, values, is_float in columns
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            # The same features give the same bytes.
            writer.write(example.SerializeToString(deterministic=True))


_WRITTEN = {**FEATURES, "word_starts": (WORD_STARTS, False)}


def _feature(values, is_float):
    if is_float:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    # Lists are taken faster than arrays.
    values = values.astype("int64").tolist()
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def record_lengths(path):
    """How many values each feature of a file's records has, from the first of them.

    Args:
        path: string, a file of records.

    Returns:
        A dict of feature name to int; empty if the file has no records.

    Raises:
        ValueError: if the file is no TFRecord file, or its records lack a feature that
            pretraining reads.
    """
    try:
        first = next(iter(tf.data.TFRecordDataset(str(path)).take(1)), None)
    except tf.errors.OpError as error:
        raise ValueError(
            f"{path} cannot be read as TFRecords: it is damaged, or another kind of "
            f"file. ({str(error).splitlines()[0]})"
        ) from error
    if first is None:
        if pathlib.Path(path).stat().st_size:
            raise ValueError(
                f"{path} cannot be read as TFRecords: it is no such file, or cut short."
            )
        return {}
    example = tf.train.Example()
    try:
        example.ParseFromString(first.numpy())
    except Exception as error:
        raise ValueError(
            f"{path} holds records that are no tf.train.Example."
        ) from error
    lengths = {
        name: len(getattr(feature, feature.WhichOneof("kind")).value)
        for name, feature in example.features.feature.items()
        if feature.WhichOneof("kind")
    }
    missing = [name for name, _ in FEATURES.values() if name not in lengths]
    if missing:
        raise ValueError(
            f"The records of {path} lack {missing}. Expected records of "
            "`albert-tf pretrain-data`, google-research/albert or albert_zh. Found: "
            f"{sorted(lengths)}"
        )
    return lengths


def parse_records(serialized, lengths):
    """Parse a batch of records.

    Args:
        serialized: string tensor [batch].
        lengths: dict, what `record_lengths` gave.

    Returns:
        A dict with the keys of `FEATURES`, int32 or float32 tensors [batch, values]
        (`labels` [batch]), and `word_starts` [batch, time] if the records tell.
    """
    kept = dict(FEATURES)
    if WORD_STARTS in lengths:
        kept["word_starts"] = (WORD_STARTS, False)
    parsed = tf.io.parse_example(
        serialized,
        {
            name: tf.io.FixedLenFeature(
                [lengths[name]], tf.float32 if is_float else tf.int64
            )
            for name, is_float in kept.values()
        },
    )
    batch = {
        key: parsed[name] if is_float else tf.cast(parsed[name], tf.int32)
        for key, (name, is_float) in kept.items()
    }
    return {**batch, "labels": batch["labels"][:, 0]}


def unmask(batch, plain_ids=None):
    """Put the tokens that were masked back into their places.

    Args:
        batch: dict, what `parse_records` gave.
        plain_ids: optional int tensor [vocabulary_size], the token that a label stands
            for, where labels are not tokens.

    Returns:
        An int32 tensor [batch, time], the token ids.
    """
    labels = batch["mask_ids"]
    if plain_ids is not None:
        labels = tf.gather(plain_ids, labels)
    is_there = batch["mask_weights"] > 0
    where = tf.where(is_there)
    positions = tf.cast(tf.boolean_mask(batch["mask_positions"], is_there), tf.int64)
    return tf.tensor_scatter_nd_update(
        batch["token_ids"],
        tf.stack([where[:, 0], positions], axis=1),
        tf.boolean_mask(labels, is_there),
    )
