"""TFRecords of sequences, with the feature names of the original code.

Ours hold the tokens as they are, and where words begin; masked ones what is to be
predicted, too. Masked files of google-research/albert and brightmart/albert_zh are
read, and ours by their `run_pretraining.py`.
"""

import os

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf_lite.errors import AlbertError

# What we call a feature, and its name in the records.
FEATURES = {
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
    "segment_ids": "segment_ids",
    "labels": "next_sentence_labels",
}
# 1 where a word begins. Google's generator writes it, too, albert_zh's does not.
WORD_STARTS = {"word_starts": "token_boundary"}
# All of these, or none.
MASK_FEATURES = {
    "mask_positions": "masked_lm_positions",
    "mask_ids": "masked_lm_ids",
    "mask_weights": "masked_lm_weights",
}
_ALL = {**FEATURES, **WORD_STARTS, **MASK_FEATURES}
_FLOATS = {"masked_lm_weights"}


def write_records(path, arrays):
    """Write a file of records.

    `arrays` has the keys of `FEATURES`, and perhaps of `WORD_STARTS` and
    `MASK_FEATURES`: arrays with a row a record.
    """
    columns = {_ALL[key]: np.asarray(values) for key, values in arrays.items()}
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in range(len(arrays["labels"])):
            features = {
                name: _feature(name, np.ravel(values[row]))
                for name, values in columns.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            # The same features give the same bytes.
            writer.write(example.SerializeToString(deterministic=True))


def _feature(name, values):
    if name in _FLOATS:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    # Lists are taken faster than arrays.
    values = values.astype("int64").tolist()
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def record_lengths(path):
    """How many values each feature of a file's records has, from the first of them.

    Returns:
        A dict of feature name to int; empty if the file is.

    Raises:
        AlbertError: if the file is no TFRecord file, or its records lack a feature that
            pretraining reads.
    """
    try:
        first = next(iter(tf.data.TFRecordDataset(str(path)).take(1)), None)
        # Of a file cut short within the first record there is none.
        if first is None and os.path.getsize(path) == 0:
            return {}
        features = tf.train.Example.FromString(first.numpy()).features.feature
    except (tf.errors.OpError, DecodeError, AttributeError) as error:
        raise AlbertError(
            f"{path} cannot be read as TFRecords of tf.train.Example: it is damaged, "
            f"or another kind of file. ({str(error).splitlines()[0]})"
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


def parse_records(serialized, lengths):
    """Parse serialized records [batch], of the lengths that `record_lengths` gave.

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


def find_records(folder, pattern):
    """The files of a folder that match, if their names say that they hold records."""
    found = [file for file in folder.glob(pattern) if file.is_file()]
    return sorted(x for x in found if "tfrecord" in x.name and x.name[0] != ".")


def unmask(batch, plain_ids=None):
    """The token ids [batch, time] of a parsed batch before they were masked.

    Where labels are not tokens, `plain_ids` has the token that each stands for.
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
