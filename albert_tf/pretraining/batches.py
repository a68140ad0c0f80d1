"""Serialized records in random order, and as batches that `fit` takes."""

import numpy as np
import tensorflow as tf

from albert_tf.pretraining.records import parse_records, unmask

# Records that are shuffled, besides the files' order and what was shuffled in them.
SHUFFLED = 8192
FILES_AT_ONCE = 16


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


def prepare_batch(number, serialized, lengths, masks, plain_ids, seed, has_order):
    """What `fit` takes, of the number of a batch and its serialized records.

    `plain_ids` has the token of each label of masked records; `None` where it is the
    label.
    """
    batch = parse_records(serialized, lengths)
    if masks is not None:
        ids = unmask(batch, plain_ids) if "mask_ids" in batch else batch["token_ids"]
        own_seed = tf.cast(tf.random.fold_in(tf.constant(seed), number), tf.int32)
        # Not by `__call__`: Keras may be on another backend than TensorFlow.
        batch.update(masks.call(ids, batch.get("word_starts"), own_seed))
    inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    y = {"mlm_logits": batch["mask_ids"]}
    weights = {"mlm_logits": _with_mean_one(batch["mask_weights"])}
    if has_order:
        y["sop_logits"] = batch["labels"]
        weights["sop_logits"] = tf.ones_like(batch["labels"], tf.float32)
    return {name: batch[name] for name in inputs}, y, weights


def _with_mean_one(weights):
    """Weights with which Keras' mean over all places is that over the predictions.

    Not left to the loss: devices that share a batch have more and fewer of them.
    """
    return weights / tf.maximum(tf.reduce_mean(weights), 1e-6)
