"""Masking: what is drawn, and that words stay whole."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.preprocessing import WholeWordMaskGenerator
from albert_tf.preprocessing.marked_labels import plain_token_ids
from albert_tf.preprocessing.ngrams import cut_into_ngrams
from albert_tf.tokenizers import WordPieceTokenizer

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
    """The word each token is in, counted through all rows; -1 for special tokens."""
    special = np.isin(ids, [PAD, CLS, SEP])
    after_special = np.pad(special, ((0, 0), (1, 0)), constant_values=True)[:, :-1]
    starts = ~special & (word_starts | after_special)
    return np.where(special, -1, np.cumsum(starts).reshape(ids.shape) - 1)


def predicted(output, shape):
    """Which tokens are to be predicted, from the positions."""
    mask = np.zeros(shape, bool)
    rows, slots = np.nonzero(output["mask_weights"])
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
    output = {x: y.numpy() for x, y in masks(ids, starts, seed=[seed, 1]).items()}
    chosen = predicted(output, ids.shape)
    numbers = word_numbers(ids, starts)
    assert not chosen[numbers < 0].any()
    for word in np.unique(numbers[chosen]):
        assert chosen[numbers == word].all()
    counts = chosen.sum(1)
    assert (counts <= most).all()
    assert (output["mask_weights"].sum(1) == counts).all()
    # What is not predicted is not changed, and special tokens come from nowhere.
    assert (output["token_ids"] == ids)[~chosen].all()
    assert not np.isin(output["token_ids"][chosen], [PAD, CLS, SEP]).any()
    for row in range(len(ids)):
        there = output["mask_positions"][row][: counts[row]]
        assert (np.diff(there) > 0).all()
        assert (output["mask_ids"][row][: counts[row]] == ids[row][there]).all()
        assert not output["mask_ids"][row][counts[row] :].any()
        assert not output["mask_positions"][row][counts[row] :].any()


def test_lengths_rate_and_replacements_are_those_of_the_paper():
    """Of 1.2 million words."""
    masks = generator(most=400)
    masked, words, tokens, changes = np.zeros(3, int), 0, 0, np.zeros(3, int)
    for part in range(8):
        random = np.random.default_rng(part)
        # Long segments: an n-gram at the end of one is cut.
        ids = random.integers(5, VOCABULARY, (128, 2048)).astype("int32")
        starts = random.random(ids.shape) < 0.6
        starts[:, 0] = True
        seed = tf.constant([part, 7])
        output = masks(ids, starts, seed)
        chosen = predicted(output, ids.shape)
        cut = tf.unstack(tf.random.split(seed, 3))[0]
        ngrams = cut_into_ngrams(tf.ones(ids.shape, bool), starts, 3, cut).numpy()
        numbers = ngrams + 2048 * np.arange(128)[:, None]
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
    # A random token is the same again once in 195 times.
    again = 0.1 / (VOCABULARY - 4 - 1)
    assert chi_square(changes, [0.8, 0.1 - again, 0.1 + again]) < CHI_SQUARE[2]


@pytest.mark.slow
def test_random_tokens_are_of_the_whole_vocabulary():
    ids = np.full((64, 512), 7, "int32")
    output = generator(0.5, 400, mask_token_rate=0.0, random_token_rate=1.0)(ids)
    counts = np.bincount(output["token_ids"].numpy().ravel(), minlength=VOCABULARY)
    assert not counts[[PAD, CLS, SEP, MASK]].any()
    assert (np.delete(counts, [PAD, CLS, SEP, MASK]) > 0).all()


def test_every_word_has_the_same_chance():
    ids, starts = sequences(1, 300, 3)
    ids, starts = np.repeat(ids, 2000, axis=0), np.repeat(starts, 2000, axis=0)
    output = generator(0.2, 120, ngram=1)(ids, starts, seed=[5, 6])
    shares = predicted(output, ids.shape).mean(0)[word_numbers(ids, starts)[0] >= 0]
    # Four and a half standard deviations of 2,000 draws.
    assert np.abs(shares - 0.2).max() < 4.5 * (0.2 * 0.8 / 2000) ** 0.5


@pytest.mark.parametrize("length", [64])
def test_real_lengths_have_the_rate_too(length):
    ids, starts = sequences(3000, length, 1)
    rate = 0.15
    output = generator(rate, length // 2)(ids, starts, seed=[1, 2])
    masked = predicted(output, ids.shape).sum()
    assert abs(masked / (~np.isin(ids, [PAD, CLS, SEP])).sum() / rate - 1) < 0.01


def test_the_seed_decides():
    ids, starts = sequences(8, 64)
    masks = generator()
    first, again, other = (masks(ids, starts, seed=[1, x]) for x in (2, 2, 3))
    for name, values in first.items():
        assert np.array_equal(values, again[name])
    assert not np.array_equal(first["token_ids"], other["token_ids"])
    # Without a seed each call draws one.
    drawn = [masks(ids, starts)["token_ids"].numpy() for _ in range(2)]
    assert not np.array_equal(*drawn)


def test_in_a_dataset_each_epoch_has_its_own_masks():
    keras.utils.set_random_seed(5)
    ids, starts = sequences(16, 64)
    masks = generator()
    data = tf.data.Dataset.from_tensor_slices((ids, starts)).batch(4)
    data = data.map(lambda x, y: masks.call(x, y))
    epochs = [np.concatenate([x["token_ids"] for x in data]) for _ in range(2)]
    assert not np.array_equal(*epochs)


@pytest.mark.parametrize("most", [5])
def test_what_does_not_fit_leaves_its_place_to_others(most):
    """The cap of a sequence is reached, if there are words enough of one token."""
    ids, starts = sequences(200, 64)
    output = generator(0.3, most, ngram=3)(ids, starts, seed=[3, 4])
    assert output["mask_weights"].numpy().sum(1).mean() > 0.96 * most


def test_single_tokens_of_a_word_too_long_to_be_masked():
    ids = np.arange(5, 45, dtype="int32")[np.newaxis]
    one_word = np.arange(40)[np.newaxis] == 0
    for whole_word, count in ((True, 0), (False, 6)):
        mask = generator(most=8, ngram=1, whole_word=whole_word)
        given = mask(ids, one_word, seed=[1, 2])
        assert np.sum(given["mask_weights"]) == count


def test_the_labels_of_albert_zh_need_their_tokens():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "a", "##a", "##1"]
    tokenizer = WordPieceTokenizer(tokens)
    with pytest.raises(ValueError, match="This one has none"):
        WholeWordMaskGenerator.for_tokenizer(tokenizer, marked_labels=True)


def test_the_labels_of_albert_zh():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "##我", "果", "##果"]
    tokens += ["he", "##y", "苹", "y", "##1", "1", "。", "##。"]
    tokenizer = WordPieceTokenizer(tokens)
    masks = WholeWordMaskGenerator.for_tokenizer(tokenizer, 0.9, 16, marked_labels=True)
    # Marked are Chinese characters after a Chinese one: not those after Latin letters,
    # nor what is not Chinese.
    words = [["我"], ["苹", "果"], ["he", "##y"], ["y", "果"], ["我", "1", "果", "。"]]
    labels = ["我", "苹", "##果", "he", "##y", "y", "果", "我", "1", "##果", "。"]
    ids = np.array([[tokens.index(token) for word in words for token in word]])
    expected = np.array([tokens.index(label) for label in labels])
    starts = np.array([[i == 0 for word in words for i in range(len(word))]])
    drawn = [masks(ids, starts, seed=[0, seed]) for seed in range(9)]
    seen = set()
    for output in drawn:
        there = np.asarray(output["mask_positions"])[output["mask_weights"] > 0]
        given = np.asarray(output["mask_ids"])[output["mask_weights"] > 0]
        assert given.tolist() == expected[there].tolist()
        seen |= set(there.tolist())
    assert seen == set(range(len(expected)))
    # And back: no piece of a Latin word loses its marker.
    plain_ids = np.array(plain_token_ids(masks.inner_label_ids))
    assert plain_ids[expected].tolist() == ids[0].tolist()


def test_config_round_trip():
    masks = generator(0.1, 12, ngram=2, inner_label_ids=list(range(VOCABULARY)))
    again = WholeWordMaskGenerator.from_config(masks.get_config())
    ids, starts = sequences(3, 40)
    for name, values in masks(ids, starts, seed=[4, 5]).items():
        assert np.array_equal(values, again(ids, starts, seed=[4, 5])[name])


def test_very_short_sequences():
    for length in (1, 5):
        ids = np.full((4, length), 9, "int32")
        output = generator(most=7)(ids)
        assert output["mask_positions"].shape == (4, 7)
        assert (output["mask_weights"].numpy().sum(1) >= 1).all()
    # Nothing to mask.
    output = generator()(np.full((2, 6), PAD, "int32"))
    assert not output["mask_weights"].numpy().any()


def test_impossible_arguments():
    for changes, message in (
        ({"rate": 0}, "mask_selection_rate"),
        ({"rate": 1.0}, "mask_selection_rate"),
        ({"most": 0}, "mask_selection_length"),
        ({"ngram": 0}, "ngram"),
        ({"mask_token_rate": 0.8, "random_token_rate": 0.3}, "together not above 1"),
        ({"mask_token_rate": -0.1}, "not be below 0"),
    ):
        with pytest.raises(ValueError, match=message):
            generator(**changes)


def test_a_vocabulary_without_mask_is_refused():
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    with pytest.raises(ValueError, match=r"no \[MASK\].*Add it as a line"):
        WholeWordMaskGenerator.for_tokenizer(tokenizer)
