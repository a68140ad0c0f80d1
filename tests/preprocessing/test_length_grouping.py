"""Batches of like length: nothing lost, little padded, and still shuffled."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.preprocessing.length_grouping import GroupedTexts
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.token_budget import TokenBudget


@pytest.fixture(params=[None, 17], ids=["no_seed", "seed"])
def seed(request):
    """As after `keras.utils.set_random_seed`, which many a script begins with."""
    tf.random.set_seed(request.param)
    yield request.param
    tf.random.set_seed(None)


def skewed_lengths(count):
    """Many short texts and a few long ones, as in a corpus of reviews."""
    lengths = np.random.default_rng(3).lognormal(3.5, 0.9, count)
    return np.clip(lengths.astype(int), 1, 510)


def epochs_of(lengths, batch_size, shuffle=True, epochs=2):
    """The examples in each batch of each epoch, as a model gets them."""
    features = (tf.range(len(lengths)),)
    dataset = GroupedTexts.of(
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
@pytest.mark.parametrize(("count", "batch_size"), [(1, 4), (4, 4), (17, 4), (700, 3)])
def test_each_epoch_has_every_example_once_and_a_short_batch_last(
    count, batch_size, shuffle
):
    for batches in epochs_of(skewed_lengths(count), batch_size, shuffle=shuffle):
        assert sorted(np.concatenate(batches)) == list(range(count))
        full, rest = divmod(count, batch_size)
        sizes = [batch_size] * full + [rest] * (rest > 0)
        assert [len(batch) for batch in batches] == sizes


def test_dataset_knows_its_number_of_batches():
    lengths = skewed_lengths(17)
    dataset = GroupedTexts.of((lengths,), lengths, tf.identity, 4, True).dataset
    assert int(dataset.cardinality()) == 5


def test_results_are_put_back_in_the_order_of_the_texts():
    lengths = skewed_lengths(50)
    texts = GroupedTexts.of((tf.range(50),), lengths, tf.identity, 4)
    rows = np.concatenate(list(texts.dataset.as_numpy_iterator()))
    assert (np.diff(lengths[rows]) >= 0).all()
    outputs = {"array": rows * 10, "both": (rows, [row.repeat(2) for row in rows])}
    restored = texts.restore(outputs)
    assert restored["array"].tolist() == list(range(0, 500, 10))
    array, per_token = restored["both"]
    assert array.tolist() == list(range(50))
    assert [row.tolist() for row in per_token] == [[i, i] for i in range(50)]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    ("count", "batch_size"),
    [(500, 8), pytest.param(9001, 32, marks=pytest.mark.slow)],
)
def test_padding_is_under_two_fifths_of_what_random_batches_pay(
    count, batch_size, shuffle
):
    lengths = skewed_lengths(count)
    at_random = np.random.default_rng(0).permutation(count)
    random_batches = np.split(at_random, range(batch_size, count, batch_size))
    for batches in epochs_of(lengths, batch_size, shuffle=shuffle):
        paid = padding(batches, lengths)
        assert paid < 0.4 * padding(random_batches, lengths)


@pytest.mark.parametrize("count", [300, pytest.param(3001, marks=pytest.mark.slow)])
def test_each_epoch_brings_other_examples_together(count, seed):
    # Most data sets people fine-tune on are smaller than one sorting window.
    first, second = map(pairs_meeting, epochs_of(skewed_lengths(count), 16))
    assert len(first & second) < 0.6 * len(first)


def test_each_epoch_takes_the_batches_in_another_order(seed):
    lengths = skewed_lengths(1000)
    epochs = epochs_of(lengths, 32)
    first, second = ([lengths[batch].max() for batch in epoch] for epoch in epochs)
    assert first != second
    for widths in (first, second):
        assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.7


def test_short_last_batch_is_not_always_the_longest_examples(seed):
    lengths = np.arange(1, 104)
    last = [batches[-1] for batches in epochs_of(lengths, 25, epochs=8)]
    assert len({tuple(sorted(rows)) for rows in last}) > 1
    assert min(lengths[rows].min() for rows in last) < 52


def test_seed_makes_the_epochs_repeatable():
    def epochs(seed):
        tf.random.set_seed(seed)
        return np.concatenate(sum(epochs_of(skewed_lengths(50), 8), [])).tolist()

    once, again, other = epochs(5), epochs(5), epochs(6)
    tf.random.set_seed(None)
    assert once == again
    assert once != other


def test_labels_and_weights_stay_with_their_example():
    lengths = skewed_lengths(61)
    tokens = np.repeat(np.arange(61), lengths)
    dataset = GroupedTexts.of(
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
def test_a_batch_of_enough_tokens_ends_before_more_padding(enough, ends):
    # Padded to 8, 8, 8, 8, 16, 16, 24 and 40.
    budget = TokenBudget(96, SegmentPacker(2, 3, sequence_length=64), enough)
    assert budget.cut([5, 6, 7, 8, 9, 10, 20, 33]).tolist() == ends


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("texts", [1, 3])
def test_a_token_budget_is_kept_and_nearly_used(shuffle, texts, seed):
    lengths = skewed_lengths(700)
    budget = TokenBudget(2048, SegmentPacker(2, 3, sequence_length=512))
    features = (tf.range(700),)
    dataset = GroupedTexts.of(
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
