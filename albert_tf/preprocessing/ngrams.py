"""Cutting sequences into n-grams of whole words, and choosing those to mask."""

import numpy as np
import tensorflow as tf


def cut_into_ngrams(selectable, word_starts, ngram, seed):
    """Number the n-grams, of at most `ngram` words, of each sequence.

    Returns an int32 tensor [batch, time]: the n-gram that a token is in, from 0 on, and
    `time` for unselectable tokens.
    """
    time = tf.shape(selectable)[1]
    after_a_gap = ~tf.pad(selectable, [[0, 0], [1, 0]])[:, :-1]
    starts = selectable & (word_starts | after_a_gap)
    words = tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1
    lengths = _draw_lengths(tf.shape(words), ngram, seed)
    first_words = tf.cumsum(lengths, axis=1, exclusive=True)
    of_word = tf.searchsorted(first_words, tf.maximum(words, 0), side="right")
    changes = of_word != tf.pad(of_word, [[0, 0], [1, 0]])[:, :-1]
    begins = starts & (changes | after_a_gap)
    ngrams = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
    return tf.where(selectable, ngrams, time)


def _draw_lengths(shape, ngram, seed):
    """Words of each n-gram, by p(n) = (1/n) / sum(1/k)."""
    weights = 1 / np.arange(1, ngram + 1)
    limits = np.cumsum(weights / weights.sum())[:-1].astype("float32")
    draws = tf.random.stateless_uniform(shape, seed)
    return 1 + tf.reduce_sum(
        tf.cast(draws[..., tf.newaxis] >= limits, tf.int32), axis=-1
    )


def choose_tokens(ngrams, rate, most, seed):
    """Which tokens to mask, bool [batch, time].

    N-grams, as `cut_into_ngrams` numbers them, are chosen in random order until the
    rate is reached. No sequence has more than `most` tokens.
    """
    time = tf.shape(ngrams)[1]
    # [batch, time] tokens of each n-gram, 0 where there are fewer n-grams.
    lengths = row_counts(ngrams, time + 1)[:, :time]
    order_seed, budget_seed = tf.unstack(tf.random.split(seed, 2))
    draws = tf.random.stateless_uniform(tf.shape(lengths), order_seed)
    # What never fits is left out. The others have one token each at least: twice as
    # many as can be masked, for some may not fit when it is their turn.
    possible = (lengths > 0) & (lengths <= most)
    count = tf.minimum(2 * most, time)
    order = tf.math.top_k(tf.where(possible, draws, -1.0), count).indices
    in_order = tf.where(
        tf.gather(possible, order, batch_dims=1),
        tf.gather(lengths, order, batch_dims=1),
        0,
    )
    budget = tf.minimum(_budget(lengths, rate, budget_seed), most)
    in_order = _without_misfits(in_order, budget, most)
    before = tf.cumsum(in_order, axis=1, exclusive=True)
    accepted = (in_order > 0) & (before < budget)
    accepted = row_counts(tf.where(accepted, order, time), time + 1)[:, :time] > 0
    return tf.gather(tf.pad(accepted, [[0, 0], [0, 1]]), ngrams, batch_dims=1)


def _without_misfits(lengths, budget, most):
    """The lengths with 0 for n-grams that do not fit when it is their turn."""

    def misfits(lengths):
        # One in a row at most: after it the budget is reached.
        before = tf.cumsum(lengths, axis=1, exclusive=True)
        return (before < budget) & (before + lengths > most)

    return tf.while_loop(
        lambda lengths: tf.reduce_any(misfits(lengths)),
        lambda lengths: [tf.where(misfits(lengths), 0, lengths)],
        [lengths],
    )[0]


def _budget(lengths, rate, seed):
    """How many tokens to reach, int32 [batch, 1].

    The n-gram that reaches it is masked, too, whatever its length: were it left out
    where it is too long, long n-grams would be rarer than drawn. What it adds beyond
    the budget (in renewal theory the overshoot, on average (E[l^2] / E[l] - 1) / 2 of
    its length l) is taken off beforehand.
    """
    lengths = tf.cast(lengths, tf.float32)
    tokens = tf.reduce_sum(lengths, axis=1, keepdims=True)
    squares = tf.reduce_sum(lengths**2, axis=1, keepdims=True)
    budget = rate * tokens - (tf.math.divide_no_nan(squares, tokens) - 1) / 2
    # Up or down at random, so that the average is the budget.
    rounded = tf.floor(budget + tf.random.stateless_uniform(tf.shape(budget), seed))
    return tf.maximum(tf.cast(rounded, tf.int32), 1)


def row_counts(numbers, limit):
    """How often each number from 0 to `limit` - 1 stands in each row."""
    rows = tf.shape(numbers)[0]
    flat = numbers + limit * tf.range(rows)[:, tf.newaxis]
    counts = tf.math.unsorted_segment_sum(
        tf.ones_like(flat), flat, num_segments=rows * limit
    )
    return tf.reshape(counts, [rows, limit])
