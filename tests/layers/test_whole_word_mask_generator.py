"""Whole-word masks: their statistics, words stay whole, special tokens stay."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import run_python

from albert_tf.layers.whole_word_mask_generator import _Draws, cut_into_ngrams
from albert_tf.preprocessing import WholeWordMaskGenerator
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf_lite.words import label_tokens

PAD, UNK, CLS, SEP, MASK = range(5)
VOCABULARY = 200
# The 99.9% points of chi-square, by degrees of freedom.
CHI_SQUARE = {1: 10.83, 2: 13.82}


def generator(rate=0.15, most=96, **kwargs):
    return WholeWordMaskGenerator(
        VOCABULARY, rate, MASK, most, [PAD, CLS, SEP], **kwargs
    )


def sequences(rows, length, seed=0, words=0.62):
    """`[CLS] first [SEP] second [SEP] [PAD]...` and where words begin."""
    random = np.random.default_rng(seed)
    ids = random.integers(5, VOCABULARY, (rows, length)).astype("int32")
    ends = random.integers(length // 2, length, rows)
    ids[:, 0] = CLS
    ids[np.arange(rows), ends // 3] = SEP
    ids[np.arange(rows), ends] = SEP
    ids[np.arange(length) > ends[:, None]] = PAD
    return ids, random.random((rows, length)) < words


def word_numbers(ids, word_starts):
    """Return the number of each token's word, over all rows; -1 for special tokens."""
    special = np.isin(ids, [PAD, CLS, SEP])
    after_special = np.pad(special, ((0, 0), (1, 0)), constant_values=True)[:, :-1]
    starts = ~special & (word_starts | after_special)
    return np.where(special, -1, np.cumsum(starts).reshape(ids.shape) - 1)


def predicted(output, shape):
    """Return a mask of the tokens to predict, computed from the positions."""
    mask = np.zeros(shape, bool)
    rows, slots = np.nonzero(np.asarray(output["mask_weights"]))
    mask[rows, np.asarray(output["mask_positions"])[rows, slots]] = True
    return mask


def chi_square(observed, shares):
    expected = np.asarray(shares) * np.sum(observed)
    return ((np.asarray(observed) - expected) ** 2 / expected).sum()


@given(
    seed=st.integers(0, 10**6),
    rate=st.floats(0.02, 0.6),
    most=st.integers(1, 40),
    ngram=st.integers(1, 4),
    words=st.floats(0.0, 1.0),
)
@settings(max_examples=30, deadline=None)
def test_words_are_whole_and_special_tokens_stay(seed, rate, most, ngram, words):
    ids, starts = sequences(5, 41, seed, words)
    masks = generator(rate, most, ngram=ngram)
    output = {x: np.asarray(y) for x, y in masks(ids, starts, seed=[seed, 1]).items()}
    chosen = predicted(output, ids.shape)
    numbers = word_numbers(ids, starts)
    assert not chosen[numbers < 0].any()
    for word in np.unique(numbers[chosen]):
        assert chosen[numbers == word].all()
    counts = chosen.sum(1)
    assert (counts <= most).all()
    assert (output["mask_weights"].sum(1) == counts).all()
    # Other tokens are unchanged, and no special token is drawn as a replacement.
    assert (output["token_ids"] == ids)[~chosen].all()
    assert not np.isin(output["token_ids"][chosen], [PAD, CLS, SEP]).any()
    for row, positions, labels in zip(
        ids, output["mask_positions"], output["mask_ids"], strict=True
    ):
        there = positions[: np.count_nonzero(positions)]
        assert (np.diff(there) > 0).all()
        assert (labels[: len(there)] == row[there]).all()
        assert not labels[len(there) :].any()


@pytest.mark.traced
def test_lengths_rate_and_replacements_are_those_of_the_paper():
    """Counted over 1.2 million words."""
    masks = generator(most=400)
    masked, words, tokens, changes = np.zeros(3, int), 0, 0, np.zeros(3, int)
    for part in range(8):
        random = np.random.default_rng(part)
        # Long segments, because an n-gram is truncated at the end of one.
        ids = random.integers(5, VOCABULARY, (128, 2048)).astype("int32")
        starts = random.random(ids.shape) < 0.6
        starts[:, 0] = True
        seed = np.array([part, 7])
        output = masks(ids, starts, seed)
        chosen = predicted(output, ids.shape)
        # The first draw of a call.
        cut = _Draws(keras.ops.cast(seed, masks._seeds.state.dtype))
        everywhere = keras.ops.ones(ids.shape, bool)
        ngrams = cut_into_ngrams(everywhere, starts, 3, cut)
        numbers = np.asarray(ngrams) + 2048 * np.arange(128)[:, None]
        lengths = np.bincount(numbers[chosen & starts])
        masked += np.bincount(lengths[lengths > 0], minlength=4)[1:4]
        words += starts.sum()
        tokens += ids.size
        became, was = np.asarray(output["token_ids"])[chosen], ids[chosen]
        is_mask, is_same = became == MASK, became == was
        changes += [is_mask.sum(), (~is_mask & ~is_same).sum(), is_same.sum()]
    assert words > 1_000_000
    assert chi_square(masked, [6 / 11, 3 / 11, 2 / 11]) < CHI_SQUARE[2]
    of_all = [changes.sum(), tokens - changes.sum()]
    assert chi_square(of_all, [0.15, 0.85]) < CHI_SQUARE[1]
    # A random token equals the original once in 195 times.
    again = 0.1 / (VOCABULARY - 4 - 1)
    assert chi_square(changes, [0.8, 0.1 - again, 0.1 + again]) < CHI_SQUARE[2]


def test_masks_depend_on_the_seed_alone():
    ids, starts = sequences(8, 64)
    masks = generator(ngram=2, inner_label_ids=list(range(VOCABULARY)))
    restored = WholeWordMaskGenerator.from_config(masks.get_config())
    first, other = (masks(ids, starts, seed=[1, x]) for x in (2, 3))
    again = restored(ids, starts, seed=[1, 2])
    for name, values in first.items():
        assert np.array_equal(values, again[name])
    assert not np.array_equal(first["token_ids"], other["token_ids"])


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.data")
def test_without_a_seed_each_epoch_of_a_dataset_draws_other_masks():
    ids, starts = sequences(8, 64)
    masks = generator()
    data = tf.data.Dataset.from_tensors((ids, starts)).map(lambda *x: masks.call(*x))
    epochs = [next(iter(data))["token_ids"].numpy() for _ in range(2)]
    assert not np.array_equal(*epochs)


def test_the_maximum_is_reached_and_words_above_it_are_skipped():
    ids, starts = sequences(200, 64)
    output = generator(0.3, 5, ngram=3)(ids, starts, seed=[3, 4])
    assert np.asarray(output["mask_weights"]).sum(1).mean() > 0.96 * 5
    ids = np.arange(5, 45, dtype="int32")[np.newaxis]
    one_word = np.arange(40)[np.newaxis] == 0
    for whole_word, count in ((True, 0), (False, 6)):
        mask = generator(most=8, ngram=1, whole_word=whole_word)
        weights = np.asarray(mask(ids, one_word)["mask_weights"])
        assert weights.sum() == count
    # Very short sequences, and sequences with nothing to mask.
    output = generator(most=7)(np.array([[9], [PAD]]))
    assert np.asarray(output["mask_weights"]).sum(1).tolist() == [1, 0]


def test_marked_labels_of_albert_zh():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "##我", "果", "##果"]
    tokens += ["he", "##y", "苹", "y", "##1", "1", "。", "##。"]
    tokenizer = WordPieceTokenizer(tokens)
    masks = WholeWordMaskGenerator.for_tokenizer(tokenizer, 0.9, 16, marked_labels=True)
    # A Chinese character after a Chinese one is marked; other tokens are not.
    words = [["我"], ["苹", "果"], ["he", "##y"], ["y", "果"], ["我", "1", "果", "。"]]
    labels = ["我", "苹", "##果", "he", "##y", "y", "果", "我", "1", "##果", "。"]
    ids = np.array([[tokens.index(token) for word in words for token in word]])
    expected = np.array([tokens.index(label) for label in labels])
    starts = np.array([[i == 0 for word in words for i in range(len(word))]])
    seen = set()
    for seed in range(9):
        output = masks(ids, starts, seed=[0, seed])
        there = np.asarray(output["mask_positions"])[output["mask_weights"] > 0]
        given = np.asarray(output["mask_ids"])[output["mask_weights"] > 0]
        assert given.tolist() == expected[there].tolist()
        seen |= set(there.tolist())
    assert seen == set(range(len(expected)))
    # Converted back, no piece of a Latin word loses its marker.
    plain_ids = np.array(label_tokens(tokens))
    assert plain_ids[expected].tolist() == ids[0].tolist()


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_on_other_backends(backend):
    """All tests of this file."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("is that run")
    pytest.importorskip(backend)
    code = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    file = pathlib.Path(__file__)
    run_python(code, "-q", "-pno:cacheprovider", file, KERAS_BACKEND=backend)
