"""Batches of similar length: no example is lost, little is padded, order is random."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models.batching import TextBatches
from albert_tf.preprocessing.length_grouping import TokenBudget
from albert_tf.preprocessing.segment_packer import SegmentPacker


def skewed_lengths(count):
    """Many short texts and a few long ones, as in a corpus of reviews."""
    lengths = np.random.default_rng(3).lognormal(3.5, 0.9, count)
    return np.clip(lengths.astype(int), 1, 510)


def epochs_of(lengths, batch_size, shuffle=True, epochs=2):
    """The examples in each batch of each epoch, as a model gets them."""
    features = (tf.range(len(lengths)),)
    dataset = TextBatches.of(
        features, lengths, tf.identity, batch_size, shuffle
    ).dataset
    return [[batch.numpy() for batch in dataset] for _ in range(epochs)]


def padding(batches, lengths):
    rows = [lengths[batch] for batch in batches]
    return sum(row.max() * len(row) - row.sum() for row in rows)


def pairs_meeting(batches):
    return {
        pair for batch in batches for pair in itertools.combinations(sorted(batch), 2)
    }


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("count", "batch_size"), [(1, 4), (4, 4), (17, 4), (700, 8)])
def test_epochs_are_complete_and_little_padded(count, batch_size, shuffle):
    lengths = skewed_lengths(count)
    random_order = np.random.default_rng(0).permutation(count)
    random_batches = np.split(random_order, range(batch_size, count, batch_size))
    for batches in epochs_of(lengths, batch_size, shuffle=shuffle):
        assert sorted(np.concatenate(batches)) == list(range(count))
        full, rest = divmod(count, batch_size)
        sizes = [batch_size] * full + [rest] * (rest > 0)
        assert [len(batch) for batch in batches] == sizes
        if count == 700:
            paid = padding(batches, lengths)
            assert paid < 0.4 * padding(random_batches, lengths)


def test_outputs_are_restored_to_input_order():
    lengths = skewed_lengths(50)
    texts = TextBatches.of((tf.range(50),), lengths, tf.identity, 4)
    rows = np.concatenate(list(texts.dataset.as_numpy_iterator()))
    assert (np.diff(lengths[rows]) >= 0).all()
    outputs = {"array": rows * 10, "both": (rows, [row.repeat(2) for row in rows])}
    restored = texts.restore(outputs)
    assert restored["array"].tolist() == list(range(0, 500, 10))
    array, per_token = restored["both"]
    assert array.tolist() == list(range(50))
    assert [row.tolist() for row in per_token] == [[i, i] for i in range(50)]


@pytest.mark.parametrize("seed", [None, 17])
def test_each_epoch_is_shuffled_anew(seed):
    """Examples meet others, batches come in another order, a seed repeats both."""

    def epochs():
        tf.random.set_seed(seed)
        return epochs_of(lengths, 16)

    # Most data sets that people fine-tune on are smaller than one sorting window.
    lengths = skewed_lengths(300)
    first, second = epochs()
    meeting = pairs_meeting(first)
    assert len(meeting & pairs_meeting(second)) < 0.6 * len(meeting)
    widths = [[lengths[batch].max() for batch in epoch] for epoch in (first, second)]
    assert widths[0] != widths[1]
    for row in widths:
        assert abs(np.corrcoef(row, range(len(row)))[0, 1]) < 0.7
    again = epochs()[0]
    repeated = all(map(np.array_equal, first, again))
    assert repeated == (seed is not None)
    tf.random.set_seed(None)


def test_labels_and_weights_stay_with_their_example():
    lengths = skewed_lengths(61)
    tokens = np.repeat(np.arange(61), lengths)
    dataset = TextBatches.of(
        (
            tf.RaggedTensor.from_row_lengths(tokens, lengths),
            np.arange(61) * 10,
            np.arange(61) / 7,
        ),
        lengths,
        lambda tokens, labels, weights: (tokens.to_tensor(-1), labels, weights),
        7,
        shuffle=True,
    ).dataset
    seen = []
    for batch in dataset.as_numpy_iterator():
        for row, label, weight in zip(*batch, strict=True):
            example = row[0]
            assert (row == example).sum() == lengths[example]
            assert label == example * 10
            assert weight == pytest.approx(example / 7)
            seen.append(example)
    assert sorted(seen) == list(range(61))


@pytest.mark.parametrize(
    "enough, ends", [(None, [0, 6, 8]), (16, [0, 4, 6, 7, 8]), (32, [0, 4, 6, 8])]
)
def test_a_large_batch_is_closed_rather_than_padded_further(enough, ends):
    # Padded to 8, 8, 8, 8, 16, 16, 24 and 40.
    budget = TokenBudget(96, SegmentPacker(2, 3, sequence_length=64), enough)
    assert budget.cut([5, 6, 7, 8, 9, 10, 20, 33]).tolist() == ends


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("texts", [1, 3])
def test_a_token_budget_is_kept_and_nearly_used(shuffle, texts):
    lengths = skewed_lengths(700)
    budget = TokenBudget(2048, SegmentPacker(2, 3, sequence_length=512))
    features = (tf.range(700),)
    dataset = TextBatches.of(
        features, lengths, tf.identity, budget, shuffle, texts
    ).dataset
    epochs = [[batch.numpy() for batch in dataset] for _ in range(2)]
    for batches in epochs:
        assert len(batches) == int(dataset.cardinality())
        assert sorted(np.concatenate(batches)) == list(range(700))
        padded = [-(-lengths[rows].max() // 8) * 8 * len(rows) for rows in batches]
        alone = [len(rows) == 1 for rows in batches]
        fits = [size * texts <= 2048 for size in padded]
        assert all(fit or one for fit, one in zip(fits, alone, strict=True))
        assert np.mean(padded) * texts > 0.85 * 2048
    if shuffle:
        first, second = map(pairs_meeting, epochs)
        assert len(first & second) < 0.6 * len(first)
    else:
        assert (np.diff(lengths[np.concatenate(epochs[0])]) >= 0).all()
