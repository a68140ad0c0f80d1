"""Batches of similar length: no example is lost, little is padded, order is random."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models.batching import TextBatches
from albert_tf.preprocessing.length_grouping import FixedSize, TokenBudget


def skewed_lengths(count):
    """Many short texts and a few long ones, as in a corpus of reviews."""
    lengths = np.random.default_rng(3).lognormal(3.5, 0.9, count)
    return np.clip(lengths.astype(int), 1, 510)


def epochs_of(lengths, size, shuffle=True, texts=1):
    """The examples in each batch of two epochs, as a model gets them."""
    features = (tf.range(len(lengths)),)
    is_budget = isinstance(size, TokenBudget)
    plan = size.shared_by(texts) if is_budget else FixedSize(size)
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
def test_epochs_are_complete_and_little_padded(count, shuffle):
    lengths = skewed_lengths(count)
    random_order = np.random.default_rng(0).permutation(count)
    random_batches = np.split(random_order, range(8, count, 8))
    for batches in epochs_of(lengths, 8, shuffle):
        assert sorted(np.concatenate(batches)) == list(range(count))
        assert [len(batch) for batch in batches] == [len(x) for x in random_batches]
        paid, random = (padding(rows, lengths) for rows in (batches, random_batches))
        assert paid <= 0.4 * random


def test_outputs_are_restored_to_input_order():
    lengths = skewed_lengths(50)
    texts = TextBatches((tf.range(50),), lengths, tf.identity, FixedSize(4))
    rows = np.concatenate(list(texts.dataset.as_numpy_iterator()))
    assert (np.diff(lengths[rows]) >= 0).all()
    restored = texts.restore({"both": (rows, [row.repeat(2) for row in rows])})
    array, per_token = restored["both"]
    assert array.tolist() == list(range(50))
    assert [row.tolist() for row in per_token] == [[i, i] for i in range(50)]


@pytest.mark.parametrize("seed", [None, 17])
def test_each_epoch_is_shuffled_anew(seed):
    def epochs():
        tf.random.set_seed(seed)
        return epochs_of(lengths, 16)

    # Most data sets that people fine-tune on are smaller than one sorting window.
    lengths = skewed_lengths(300)
    first, second = epochs()
    meeting = pairs_meeting(first)
    assert len(meeting & pairs_meeting(second)) < 0.6 * len(meeting)
    for epoch in (first, second):
        widths = [lengths[batch].max() for batch in epoch]
        assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.7
    again = epochs()[0]
    repeated = all(map(np.array_equal, first, again))
    assert repeated == (seed is not None)
    tf.random.set_seed(None)


def test_labels_and_weights_stay_with_their_example():
    lengths = skewed_lengths(61)
    examples = np.arange(61)
    tokens = tf.RaggedTensor.from_row_lengths(np.repeat(examples, lengths), lengths)
    dataset = TextBatches(
        (tokens, examples * 10, examples / 7),
        lengths,
        lambda tokens, labels, weights: (tokens.to_tensor(-1), labels, weights),
        FixedSize(7),
        shuffle=True,
    ).dataset
    seen = []
    for batch in dataset.as_numpy_iterator():
        for row, label, weight in zip(*batch, strict=True):
            example = row[0]
            assert (row == example).sum() == lengths[example]
            assert (label, weight) == (example * 10, pytest.approx(example / 7))
            seen.append(example)
    assert sorted(seen) == list(range(61))
