"""Serialized records in random order, and as batches that `fit` takes."""

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.length_grouping import shuffled_order
from albert_tf.preprocessing.masked_batches import (
    PREDICTIONS_STEP,
    trimmed,
    with_mean_one,
)
from albert_tf.pretraining.records import (
    FEATURES,
    MASK_FEATURES,
    parse_records,
    unmask,
)

# Records that are shuffled, besides the files' order and what was shuffled in them.
SHUFFLED = 8192
FILES_AT_ONCE = 16
# Most batches that are read at once to make them of like length.
GROUPED_BATCHES = 64
# What lengths are rounded up to: each shape is compiled on JAX.
LENGTH_STEP = 16


def serialized_records(files, seed, training):
    """The serialized records of files: in random order without end, or once through."""
    if not training:
        return _in_order(tf.data.Dataset.from_tensor_slices(files))
    # Each epoch by a seed of its own: whoever iterates a second time, as Keras does to
    # look at a batch, gets the same order. Begun anywhere, for that of the next seed
    # should not be this one's second epoch.
    first = int(np.random.default_rng(seed).integers(2**30))
    epochs = tf.data.Dataset.counter(start=first)
    return epochs.flat_map(lambda epoch: _shuffled(files, epoch))


def _in_order(names):
    """The records of a dataset of file names, some files at a time."""
    return names.interleave(
        tf.data.TFRecordDataset, cycle_length=FILES_AT_ONCE, block_length=16
    )


def _shuffled(files, seed):
    # Of this function, for `tf.data` has it traced: the order is the seed's alone, not
    # also that of what a user has set for all.
    tf.random.set_seed(1)
    names = tf.data.Dataset.from_tensor_slices(files)
    names = names.shuffle(len(files), seed, reshuffle_each_iteration=False)
    return _in_order(names).shuffle(SHUFFLED, seed, reshuffle_each_iteration=False)


def grouped_by_length(records, count, batch_size, lengths, seed):
    """Batches of like length of the `count` serialized records that repeat endlessly.

    Records are exchanged between 64 neighbouring batches, or an epoch if that is less.
    """
    together = max(min(count // batch_size, GROUPED_BATCHES), 1)
    mask = FEATURES["padding_mask"]
    feature = {mask: tf.io.FixedLenFeature([lengths[mask]], tf.int64)}

    def group(number, serialized):
        tokens = tf.reduce_sum(tf.io.parse_example(serialized, feature)[mask], axis=1)
        own_seed = tf.random.fold_in(tf.constant(seed), number)[0]
        order = shuffled_order(tokens, batch_size, own_seed)
        return tf.reshape(tf.gather(serialized, order), [together, batch_size])

    windows = records.batch(together * batch_size, drop_remainder=True).enumerate()
    return windows.map(group, num_parallel_calls=2, deterministic=True).unbatch()


def prepare_batch(
    number, serialized, lengths, masks, plain_ids, seed, has_order, trims
):
    """What `fit` takes, of the number of a batch and its serialized records.

    `plain_ids` has the token of each label of masked records; `None` where it is the
    label. `trims` leaves out the positions that no sequence of the batch has.
    """
    batch = parse_records(serialized, lengths)
    if trims:
        batch = trimmed(batch, "padding_mask", LENGTH_STEP, _OF_POSITIONS)
    if masks is not None:
        ids = unmask(batch, plain_ids) if "mask_ids" in batch else batch["token_ids"]
        own_seed = tf.cast(tf.random.fold_in(tf.constant(seed), number), tf.int32)
        # Not by `__call__`: Keras may be on another backend than TensorFlow.
        batch.update(masks.call(ids, batch.get("word_starts"), own_seed))
    if trims:
        batch = trimmed(batch, "mask_weights", PREDICTIONS_STEP, MASK_FEATURES)
    inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    y = {"mlm_logits": batch["mask_ids"]}
    weights = {"mlm_logits": with_mean_one(batch["mask_weights"])}
    if has_order:
        y["sop_logits"] = batch["labels"]
        # A sequence of one segment has no order.
        has_two = tf.reduce_max(batch["segment_ids"], axis=1)
        weights["sop_logits"] = tf.cast(has_two, tf.float32)
    return {name: batch[name] for name in inputs}, y, weights


_OF_POSITIONS = ("token_ids", "segment_ids", "padding_mask", "word_starts")
