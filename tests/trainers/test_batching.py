"""Batches of similar length: no example is lost, little is padded, order is random."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import spearmanr

from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.trainers.batching import FixedSize, TextBatches, TokenBudget

PACKER = SegmentPacker(cls_token_id=2, sep_token_id=3)


def skewed_lengths(count):
    """Many short texts and a few long ones, as in a corpus of reviews."""
    lengths = np.random.default_rng(3).lognormal(3.5, 0.9, count)
    return np.clip(lengths.astype(int), 1, 510)


def epochs_of(lengths, plan, shuffle=True):
    """The examples in each batch of two epochs, as a model gets them."""
    features = (tf.range(len(lengths)),)
    batches = TextBatches(features, lengths, tf.identity, plan, shuffle)
    return [[batch.numpy() for batch in batches.dataset] for _ in range(2)]


def padding(batches, lengths):
    rows = [lengths[batch] for batch in batches]
    return sum(row.max() * len(row) - row.sum() for row in rows)


def pairs_meeting(batches):
    return {
        pair for batch in batches for pair in itertools.combinations(sorted(batch), 2)
    }


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("count", [1, 699])
@pytest.mark.parametrize("plan", [FixedSize(8), TokenBudget(600, PACKER)])
def test_epochs_are_complete_and_little_padded(plan, count, shuffle):
    lengths = skewed_lengths(count)
    random_order = np.random.default_rng(0).permutation(count)
    random_batches = np.split(random_order, range(8, count, 8))
    for batches in epochs_of(lengths, plan, shuffle):
        assert sorted(np.concatenate(batches)) == list(range(count))
        assert len(batches) == plan.count(lengths, shuffle)
        most = [plan.batch_size(lengths[batch].max()) for batch in batches]
        assert all(len(batch) <= n for batch, n in zip(batches, most, strict=True))
        paid, random = (padding(rows, lengths) for rows in (batches, random_batches))
        assert paid <= 0.4 * random


@pytest.mark.parametrize("seed", [None, 17])
def test_each_epoch_is_shuffled_anew(seed):
    def epochs():
        tf.random.set_seed(seed)
        return epochs_of(lengths, FixedSize(16))

    # Most data sets that people fine-tune on are smaller than one sorting window.
    lengths = skewed_lengths(300)
    first, second = epochs()
    meeting = pairs_meeting(first)
    assert len(meeting & pairs_meeting(second)) < 0.6 * len(meeting)
    for epoch in (first, second):
        widths = [lengths[batch].max() for batch in epoch]
        # By chance once in 6 million orders.
        assert abs(spearmanr(widths, range(len(widths))).statistic) < 0.9
    again = epochs()[0]
    repeated = all(map(np.array_equal, first, again))
    assert repeated == (seed is not None)
    tf.random.set_seed(None)
