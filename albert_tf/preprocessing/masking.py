"""Masks of n-grams of whole words, for masked language modelling."""

import random
from collections.abc import Iterable
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.layers.common import check_arguments
from albert_tf.preprocessing.words import marked_label_ids
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class WholeWordMaskGenerator(keras.layers.Layer):
    """Mask n-grams of whole words, for masked language modelling.

    The words of a sequence are divided into n-grams whose lengths are drawn with
    p(n) = (1/n) / sum(1/k), which for n up to 3 is 6/11, 3/11, 2/11. N-grams are then
    chosen in random order until `mask_selection_rate` of the tokens is masked, on
    average. An n-gram is masked completely or not at all and never spans an
    unselectable token.

    Like KerasHub's `MaskedLMMaskGenerator`, with words. In `tf.data` each epoch has
    other masks.

    Args:
        vocabulary_size: int.
        mask_selection_rate: float, the share of the tokens to predict, or a pair of
            floats: the share at the beginning and at the end of a training.
        mask_token_id: int, the id of `[MASK]`.
        mask_selection_length: int. Maximum number of predictions per sequence. N-grams
            that do not fit are left unmasked.
        unselectable_token_ids: list of ints, such as those of `[CLS]`, `[SEP]` and
            `[PAD]`, which are neither masked nor random replacements.
        mask_token_rate, random_token_rate: floats. The shares of the tokens to predict
            that become `[MASK]` or a random other token; the rest is kept.
        ngram: int. Maximum number of words per n-gram.
        whole_word: bool. `False` treats each token as a word and ignores
            `word_starts`.
        inner_label_ids: optional list of `vocabulary_size` ints: the label of a token
            within a word, by its id; -1 for a token that is its own label, as are all
            tokens of a word that begins with it. By default the label is the token.

    Call arguments:
        token_ids: int tensor [batch, time].
        word_starts: optional int or bool tensor [batch, time], true where a word
            begins. By default each token is a word.
        seed: optional int tensor [2]. The same seed masks the same tokens. By default
            each call draws one.
        progress: optional float from 0 to 1, the share of the training that is done:
            the rate changes linearly with it. By default 1.

    Returns:
        A dict of `token_ids` [batch, time], masked, and `mask_positions`, `mask_ids`
        (int32) and `mask_weights` (float32), [batch, mask_selection_length]: position
        and label of each prediction in text order, and 1.0, or 0.0 for padding.

    Raises:
        AlbertError: if a rate or a count is not allowed.

    Example:
    ```python
    masks = albert_tf.preprocessing.WholeWordMaskGenerator(
        vocabulary_size=100,
        mask_selection_rate=0.3,
        mask_token_id=4,
        mask_selection_length=4,
    )
    token_ids = tf.constant([[2, 10, 11, 12, 13, 14, 15, 3]])
    masked = masks(token_ids, seed=[1, 2])
    print(masked["token_ids"].shape, masked["mask_positions"].shape)
    ```

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942);
        [SpanBERT](https://arxiv.org/abs/1907.10529);
        [Dynamic masking rate schedules](https://arxiv.org/abs/2305.15096);
        google-research/albert `create_pretraining_data.py`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        mask_selection_rate: float | tuple[float, float],
        mask_token_id: int,
        mask_selection_length: int,
        unselectable_token_ids: Iterable[int] = (0,),
        mask_token_rate: float = 0.8,
        random_token_rate: float = 0.1,
        ngram: int = 3,
        whole_word: bool = True,
        inner_label_ids: list[int] | None = None,
        **kwargs: Any,
    ):
        check_arguments(type(self), kwargs)
        super().__init__(**kwargs)
        if not all(0 < rate <= 1 for rate in np.ravel(mask_selection_rate)):
            raise AlbertError(
                "`mask_selection_rate` must be above 0 and at most 1, such as 0.15. "
                f"Received: {mask_selection_rate}"
            )
        rates = (mask_token_rate, random_token_rate)
        if min(rates) < 0 or sum(rates) > 1 + 1e-9:
            raise AlbertError(
                "`mask_token_rate` and `random_token_rate` must be at least 0, and "
                f"their sum at most 1, such as 0.8 and 0.1. Received: {rates}"
            )
        if min(mask_selection_length, ngram) < 1:
            raise AlbertError(
                "`mask_selection_length` and `ngram` must be at least 1. Received: "
                f"{mask_selection_length} and {ngram}"
            )
        self.vocabulary_size = vocabulary_size
        self.mask_selection_rate = mask_selection_rate
        self.mask_token_id = mask_token_id
        self.mask_selection_length = mask_selection_length
        self.unselectable_token_ids = list(unselectable_token_ids)
        self.mask_token_rate = mask_token_rate
        self.random_token_rate = random_token_rate
        self.ngram = ngram
        self.whole_word = whole_word
        self.inner_label_ids = inner_label_ids
        # This state outlives the iterators of a dataset. With TensorFlow's global seed
        # set, `tf.random.uniform` would repeat in every epoch.
        self._seeds = tf.random.Generator.from_seed(random.getrandbits(31))

    @classmethod
    def for_tokenizer(
        cls,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        mask_selection_rate: float | tuple[float, float] = 0.15,
        mask_selection_length: int = 20,
        marked_labels: bool = False,
        **kwargs: Any,
    ) -> "WholeWordMaskGenerator":
        """Return a generator for the vocabulary of a tokenizer.

        With `marked_labels`, the label of a Chinese character within a Chinese word is
        `##` and the character where the vocabulary has that token, as in albert_zh.
        Other arguments are those of the class.
        """
        check_has_mask(tokenizer)
        inner_label_ids = marked_label_ids(tokenizer) if marked_labels else None
        if marked_labels and inner_label_ids is None:
            raise AlbertError(
                "Labels with ## need a vocabulary with Chinese characters after ##, "
                "such as ##中 of albert_zh. This one has none: leave out "
                "`marked_labels=`."
            )
        return cls(
            tokenizer.vocabulary_size(),
            mask_selection_rate,
            tokenizer.mask_token_id,
            mask_selection_length,
            unselectable_token_ids=[
                tokenizer.cls_token_id,
                tokenizer.sep_token_id,
                tokenizer.pad_token_id,
                tokenizer.mask_token_id,
            ],
            inner_label_ids=inner_label_ids,
            **kwargs,
        )

    def call(
        self,
        token_ids: tf.Tensor,
        word_starts: tf.Tensor | None = None,
        seed: Any = None,
        progress: tf.Tensor | float = 1.0,
    ) -> dict[str, tf.Tensor]:
        token_ids = tf.cast(token_ids, tf.int32)
        if word_starts is None or not self.whole_word:
            word_starts = tf.ones_like(token_ids)
        word_starts = tf.cast(word_starts, tf.bool)
        if seed is None:
            seed = self._seeds.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
        cut, choose, replace = tf.unstack(tf.random.split(seed, 3))
        selectable = np.ones(self.vocabulary_size, bool)
        selectable[self.unselectable_token_ids] = False
        selectable = tf.gather(tf.constant(selectable), token_ids)
        ngrams = cut_into_ngrams(selectable, word_starts, self.ngram, cut)
        first, last = np.broadcast_to(self.mask_selection_rate, 2).tolist()
        rate = first + (last - first) * progress
        chosen = _choose_tokens(ngrams, rate, self.mask_selection_length, choose)
        labels = token_ids
        if self.inner_label_ids is not None:
            labels = _inner_labels(token_ids, word_starts, self.inner_label_ids)
        length = self.mask_selection_length
        more = [[0, 0], [0, tf.maximum(length - tf.shape(chosen)[1], 0)]]
        positions, is_chosen = positions_of(tf.pad(chosen, more), length)
        ids = tf.gather(tf.pad(labels, more), positions, batch_dims=1)
        return {
            "token_ids": tf.where(chosen, self._replace(token_ids, replace), token_ids),
            "mask_positions": positions,
            "mask_ids": tf.where(is_chosen, ids, 0),
            "mask_weights": tf.cast(is_chosen, tf.float32),
        }

    def _replace(self, token_ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        special = [*self.unselectable_token_ids, self.mask_token_id]
        allowed = np.setdiff1d(np.arange(self.vocabulary_size, dtype="int32"), special)
        what_seed, id_seed = tf.unstack(tf.random.split(seed, 2))
        shape = tf.shape(token_ids)
        what = tf.random.stateless_uniform(shape, what_seed)
        places = tf.random.stateless_uniform(shape, id_seed, 0, len(allowed), tf.int32)
        changed = self.mask_token_rate + self.random_token_rate
        return tf.where(
            what < self.mask_token_rate,
            self.mask_token_id,
            tf.where(what < changed, tf.gather(allowed, places), token_ids),
        )


def positions_of(
    mask: tf.Tensor, count: tf.Tensor | int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the positions of the true values of each row, then 0, and which are."""
    # `top_k` returns equal values in text order.
    positions = tf.math.top_k(tf.cast(mask, tf.float32), count).indices
    is_true = tf.gather(mask, positions, batch_dims=mask.shape.rank - 1)
    return tf.where(is_true, positions, 0), is_true


def check_has_mask(tokenizer: keras_hub.tokenizers.Tokenizer) -> None:
    if tokenizer.mask_token_id is None:
        raise AlbertError(
            f"The vocabulary has no {tokenizer.mask_token}, which masking needs. "
            "Add it as a line, or use the vocabulary of a release."
        )


def cut_into_ngrams(
    selectable: tf.Tensor, word_starts: tf.Tensor, ngram: int, seed: tf.Tensor
) -> tf.Tensor:
    """Number the n-grams of whole words of each sequence, int32 [batch, time].

    Numbers begin with 0; unselectable tokens have the number `time`. The words per
    n-gram are drawn with p(n) = (1/n) / sum(1/k).
    """
    time = tf.shape(selectable)[1]
    after_a_gap = ~_shifted(selectable)
    starts = selectable & (word_starts | after_a_gap)
    words = tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1
    weights = 1 / np.arange(1, ngram + 1)
    limits = np.cumsum(weights / weights.sum())[:-1].astype("float32")
    draws = tf.random.stateless_uniform(tf.shape(words), seed)[..., tf.newaxis]
    lengths = 1 + tf.reduce_sum(tf.cast(draws >= limits, tf.int32), axis=-1)
    first_words = tf.cumsum(lengths, axis=1, exclusive=True)
    of_word = tf.searchsorted(first_words, tf.maximum(words, 0), side="right")
    begins = starts & ((of_word != _shifted(of_word)) | after_a_gap)
    ngrams = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
    return tf.where(selectable, ngrams, time)


def _choose_tokens(
    ngrams: tf.Tensor, rate: tf.Tensor | float, most: int, seed: tf.Tensor
) -> tf.Tensor:
    """Choose n-grams in random order until the rate or `most` tokens are reached."""
    time = tf.shape(ngrams)[1]
    # [batch, time] tokens per n-gram, padded with 0.
    lengths = _row_counts(ngrams, time + 1)[:, :time]
    order_seed, budget_seed = tf.unstack(tf.random.split(seed, 2))
    draws = tf.random.stateless_uniform(tf.shape(lengths), order_seed)
    # Every possible n-gram has at least one token. Take twice as many n-grams as can
    # be masked, because some may not fit when it is their turn.
    possible = (lengths > 0) & (lengths <= most)
    count = tf.minimum(2 * most, time)
    order = tf.math.top_k(tf.where(possible, draws, -1.0), count).indices
    in_order = tf.gather(tf.where(possible, lengths, 0), order, batch_dims=1)
    budget = tf.minimum(_budget(lengths, rate, budget_seed), most)
    in_order = _without_misfits(in_order, budget, most)
    before = tf.cumsum(in_order, axis=1, exclusive=True)
    accepted = (in_order > 0) & (before < budget)
    accepted = _row_counts(tf.where(accepted, order, time), time + 1) > 0
    # The last column counts rejected n-grams and is read by unselectable tokens.
    accepted &= tf.range(time + 1) < time
    return tf.gather(accepted, ngrams, batch_dims=1)


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
    # Nothing lies beyond all tokens.
    budget = tf.where(rate < 1, budget, tokens)
    # Rounded up or down at random: the average is the budget.
    rounded = tf.floor(budget + tf.random.stateless_uniform(tf.shape(budget), seed))
    return tf.maximum(tf.cast(rounded, tf.int32), 1)


def _inner_labels(
    token_ids: tf.Tensor, word_starts: tf.Tensor, inner_label_ids: list[int]
) -> tf.Tensor:
    """Return the label of each token, int32 [batch, time]."""
    labels = tf.gather(tf.constant(inner_label_ids, tf.int32), token_ids)
    has_label = labels >= 0
    words = tf.cumsum(tf.cast(word_starts, tf.int32), axis=1)
    # [batch, words] whether the first token of a word has a label.
    limit = tf.shape(token_ids)[1] + 1
    begun = _row_counts(tf.where(word_starts & has_label, words, 0), limit) > 0
    within = tf.gather(begun, words, batch_dims=1) & (words > 0) & ~word_starts
    return tf.where(within & has_label, labels, token_ids)


def _row_counts(numbers: tf.Tensor, limit: tf.Tensor | int) -> tf.Tensor:
    """Count each number from 0 to `limit` - 1 in each row."""
    rows = tf.shape(numbers)[0]
    flat = numbers + limit * tf.range(rows)[:, tf.newaxis]
    counts = tf.math.unsorted_segment_sum(tf.ones_like(flat), flat, rows * limit)
    return tf.reshape(counts, [rows, limit])


def _shifted(values: tf.Tensor) -> tf.Tensor:
    """Return the value of the token before, 0 for the first."""
    return tf.pad(values, [[0, 0], [1, 0]])[:, :-1]
