"""Divide sequences into n-grams of whole words and choose those to mask."""

import numpy as np
import tensorflow as tf


def cut_into_ngrams(
    selectable: tf.Tensor, word_starts: tf.Tensor, ngram: int, seed: tf.Tensor
) -> tf.Tensor:
    """Number the n-grams, of at most `ngram` words, of each sequence.

    Returns:
        An int32 tensor [batch, time]: the number of each token's n-gram, counted from
        0, and `time` for unselectable tokens.
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


def _draw_lengths(shape: tf.Tensor, ngram: int, seed: tf.Tensor) -> tf.Tensor:
    """Draw the words per n-gram with p(n) = (1/n) / sum(1/k)."""
    weights = 1 / np.arange(1, ngram + 1)
    limits = np.cumsum(weights / weights.sum())[:-1].astype("float32")
    draws = tf.random.stateless_uniform(shape, seed)
    return 1 + tf.reduce_sum(
        tf.cast(draws[..., tf.newaxis] >= limits, tf.int32), axis=-1
    )


def choose_tokens(
    ngrams: tf.Tensor, rate: tf.Tensor | float, most: int, seed: tf.Tensor
) -> tf.Tensor:
    """Choose the tokens to mask, bool [batch, time].

    The n-grams of `cut_into_ngrams` are chosen in random order until the rate is
    reached, with at most `most` tokens per sequence.
    """
    time = tf.shape(ngrams)[1]
    # [batch, time] tokens per n-gram, padded with 0.
    lengths = row_counts(ngrams, time + 1)[:, :time]
    order_seed, budget_seed = tf.unstack(tf.random.split(seed, 2))
    draws = tf.random.stateless_uniform(tf.shape(lengths), order_seed)
    # Every possible n-gram has at least one token. Take twice as many n-grams as can
    # be masked, because some may not fit when it is their turn.
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


def _without_misfits(lengths: tf.Tensor, budget: tf.Tensor, most: int) -> tf.Tensor:
    """Set the lengths of n-grams to 0 that do not fit when it is their turn."""

    def misfits(lengths: tf.Tensor) -> tf.Tensor:
        # At most one per row: after it the budget is reached.
        before = tf.cumsum(lengths, axis=1, exclusive=True)
        return (before < budget) & (before + lengths > most)

    return tf.while_loop(
        lambda lengths: tf.reduce_any(misfits(lengths)),
        lambda lengths: [tf.where(misfits(lengths), 0, lengths)],
        [lengths],
    )[0]


def _budget(lengths: tf.Tensor, rate: tf.Tensor | float, seed: tf.Tensor) -> tf.Tensor:
    """Return the number of tokens to reach, int32 [batch, 1].

    The n-gram that reaches the budget is masked whatever its length: leaving out long
    ones there would make them rarer than drawn. The tokens beyond the budget (in
    renewal theory the overshoot, on average (E[l^2] / E[l] - 1) / 2 for a length l)
    are subtracted in advance.
    """
    lengths = tf.cast(lengths, tf.float32)
    tokens = tf.reduce_sum(lengths, axis=1, keepdims=True)
    squares = tf.reduce_sum(lengths**2, axis=1, keepdims=True)
    budget = rate * tokens - (tf.math.divide_no_nan(squares, tokens) - 1) / 2
    # Rounded up or down at random: the average is the budget.
    rounded = tf.floor(budget + tf.random.stateless_uniform(tf.shape(budget), seed))
    return tf.maximum(tf.cast(rounded, tf.int32), 1)


def row_counts(numbers: tf.Tensor, limit: tf.Tensor | int) -> tf.Tensor:
    """Count each number from 0 to `limit` - 1 in each row."""
    rows = tf.shape(numbers)[0]
    flat = numbers + limit * tf.range(rows)[:, tf.newaxis]
    counts = tf.math.unsorted_segment_sum(
        tf.ones_like(flat), flat, num_segments=rows * limit
    )
    return tf.reshape(counts, [rows, limit])
