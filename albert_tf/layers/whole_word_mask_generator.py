"""Masks of n-grams of whole words, for masked language modelling."""

import math
import random
from collections.abc import Iterable
from typing import Any, TypeAlias

import keras
import keras_hub
import numpy as np
from keras import ops

from albert_tf.layers.arguments import check_arguments, check_sizes
from albert_tf.layers.tensor_types import Tensor
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.words import marked_label_ids

# ALBERT's settings. For the default of the length see `mask_settings`.
MASK_DEFAULTS: dict[str, Any] = {
    "mask_selection_rate": 0.15,
    "mask_selection_length": None,
    "ngram": 3,
    "marked_labels": False,
}
# The seeds that `keras.random` takes.
Seed: TypeAlias = int | keras.random.SeedGenerator
# Room for the draws of one call between the seeds of two.
_DRAWS = 16


@keras.saving.register_keras_serializable(package="albert_tf")
class WholeWordMaskGenerator(keras.layers.Layer):
    """Mask n-grams of whole words, for masked language modelling.

    The words of a sequence are divided into n-grams whose lengths are drawn with
    p(n) = (1/n) / sum(1/k), which for n up to 3 is 6/11, 3/11, 2/11. N-grams are then
    chosen in random order until `mask_selection_rate` of the tokens is masked, on
    average. An n-gram is masked completely or not at all and never spans an
    unselectable token.

    Like KerasHub's `MaskedLMMaskGenerator`, with words, and on every backend of Keras:
    inside a training step, or in `tf.data` on the TensorFlow backend.

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
        most: optional int, a smaller `mask_selection_length` for this call.

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
    masked = masks(np.array([[2, 10, 11, 12, 13, 14, 15, 3]]), seed=[1, 2])
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
        # Keras would cast `progress` to 16 bits where the global policy has those.
        super().__init__(**{"dtype": "float32", **kwargs})
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
        check_sizes(mask_selection_length=mask_selection_length, ngram=ngram)
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
        # This state outlives the iterators of a dataset.
        self._seeds = keras.random.SeedGenerator(random.getrandbits(31))

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
        inner_label_ids = None
        if marked_labels:
            inner_label_ids = marked_label_ids(tokenizer.get_vocabulary())
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
        token_ids: Tensor,
        word_starts: Tensor | None = None,
        seed: Tensor | None = None,
        progress: Tensor | float = 1.0,
        most: int | None = None,
    ) -> dict[str, Tensor]:
        length = min(self.mask_selection_length, most or self.mask_selection_length)
        token_ids = ops.cast(token_ids, "int32")
        if word_starts is None or not self.whole_word:
            word_starts = ops.ones_like(token_ids)
        word_starts = ops.cast(word_starts, "bool")
        seed = self._seeds.next() if seed is None else seed
        draws = _Draws(ops.cast(seed, self._seeds.state.dtype))
        selectable = np.ones(self.vocabulary_size, bool)
        selectable[self.unselectable_token_ids] = False
        selectable = ops.take(ops.convert_to_tensor(selectable), token_ids, axis=0)
        ngrams = cut_into_ngrams(selectable, word_starts, self.ngram, draws)
        first, last = np.broadcast_to(self.mask_selection_rate, 2).tolist()
        rate = first + (last - first) * progress
        chosen = _choose_tokens(ngrams, rate, length, draws)
        labels = token_ids
        if self.inner_label_ids is not None:
            labels = _inner_labels(token_ids, word_starts, self.inner_label_ids)
        # A sequence may be shorter than the predictions.
        padding = [[0, 0], [0, length]]
        positions, is_chosen = positions_of(ops.pad(chosen, padding), length)
        ids = ops.take_along_axis(ops.pad(labels, padding), positions, axis=1)
        replaced = self._replace(token_ids, draws)
        return {
            "token_ids": ops.where(chosen, replaced, token_ids),
            "mask_positions": positions,
            "mask_ids": ops.where(is_chosen, ids, 0),
            "mask_weights": ops.cast(is_chosen, "float32"),
        }

    def _replace(self, token_ids: Tensor, draws: "_Draws") -> Tensor:
        special = [*self.unselectable_token_ids, self.mask_token_id]
        allowed = np.setdiff1d(np.arange(self.vocabulary_size, dtype="int32"), special)
        shape = ops.shape(token_ids)
        what = keras.random.uniform(shape, seed=draws)
        places = keras.random.randint(shape, 0, len(allowed), seed=draws)
        others = ops.take(ops.convert_to_tensor(allowed), places, axis=0)
        changed = self.mask_token_rate + self.random_token_rate
        kept = ops.where(what < changed, others, token_ids)
        return ops.where(what < self.mask_token_rate, self.mask_token_id, kept)


class _Draws(keras.random.SeedGenerator):
    """Seeds of the draws of one call, which follow from one seed [2].

    Without a variable, unlike other generators, so that the seed may be a tensor of a
    training step.
    """

    def __init__(self, seed: Tensor):
        self._seed, self._count = seed, 0

    def next(self, ordered: bool = True) -> Tensor:
        self._count += 1
        return ops.stack([self._seed[0] * _DRAWS + self._count, self._seed[1]])


def positions_of(mask: Tensor, count: Tensor | int) -> tuple[Tensor, Tensor]:
    """Return the positions of the true values of each row, then 0, and which are."""
    # In text order on every backend: PyTorch's `top_k` orders equal values at random.
    time = ops.shape(mask)[-1]
    first = ops.where(mask, time, 0) - ops.arange(time)
    _, positions = ops.top_k(ops.cast(first, "float32"), count)
    positions = ops.cast(positions, "int32")
    is_true = ops.take_along_axis(mask, positions, axis=-1)
    return ops.where(is_true, positions, 0), is_true


def cut_into_ngrams(
    selectable: Tensor, word_starts: Tensor, ngram: int, seed: Seed
) -> Tensor:
    """Number the n-grams of whole words of each sequence, int32 [batch, time].

    Numbers begin with 0; unselectable tokens have the number `time`. The words per
    n-gram are drawn with p(n) = (1/n) / sum(1/k).
    """
    time = ops.shape(selectable)[1]
    after_a_gap = ~_shifted(selectable)
    starts = selectable & (after_a_gap | word_starts)
    words = ops.cumsum(ops.cast(starts, "int32"), axis=1) - 1
    weights = 1 / np.arange(1, ngram + 1)
    limits = ops.convert_to_tensor(np.cumsum(weights / weights.sum())[:-1], "float32")
    draws = keras.random.uniform(ops.shape(words), seed=seed)[..., None]
    lengths = 1 + ops.sum(ops.cast(draws >= limits, "int32"), axis=-1)
    # The word at which an n-gram begins, by its number; the first begins at word 0.
    first_words = ops.minimum(ops.cumsum(lengths, axis=1), time)
    begins_there = _row_counts(first_words, time + 1) > 0
    begins_there = ops.take_along_axis(begins_there, ops.maximum(words, 0), axis=1)
    begins = starts & (begins_there | after_a_gap)
    ngrams = ops.cumsum(ops.cast(begins, "int32"), axis=1) - 1
    return ops.where(selectable, ops.maximum(ngrams, 0), time)


def _choose_tokens(
    ngrams: Tensor, rate: Tensor | float, most: int, draws: Seed
) -> Tensor:
    """Choose n-grams in random order until the rate or `most` tokens are reached."""
    time = ops.shape(ngrams)[1]
    # [batch, time] tokens per n-gram, padded with 0.
    lengths = _row_counts(ngrams, time + 1)[:, :time]
    order = keras.random.uniform(ops.shape(lengths), seed=draws)
    possible = (lengths > 0) & (lengths <= most)
    order = ops.argsort(ops.where(possible, order, 2.0), axis=1)
    in_order = ops.take_along_axis(ops.where(possible, lengths, 0), order, axis=1)
    budget = ops.minimum(_budget(lengths, rate, draws), most)
    in_order = _without_misfits(in_order, budget, most)
    before = ops.cumsum(in_order, axis=1) - in_order
    accepted = (in_order > 0) & (before < budget)
    accepted = _row_counts(ops.where(accepted, order, time), time + 1) > 0
    # The last column counts rejected n-grams and is read by unselectable tokens.
    accepted &= ops.arange(time + 1) < time
    return ops.take_along_axis(accepted, ngrams, axis=1)


def _without_misfits(lengths: Tensor, budget: Tensor, most: int) -> Tensor:
    """Set the lengths of n-grams to 0 that do not fit when it is their turn."""

    def misfits(lengths: Tensor) -> Tensor:
        # At most one per row: after it the budget is reached.
        before = ops.cumsum(lengths, axis=1) - lengths
        return (before < budget) & (before + lengths > most)

    (lengths,) = ops.while_loop(
        lambda lengths: ops.any(misfits(lengths)),
        lambda lengths: (ops.where(misfits(lengths), 0, lengths),),
        (lengths,),
    )
    return lengths


def _budget(lengths: Tensor, rate: Tensor | float, draws: Seed) -> Tensor:
    """Return the number of tokens to reach, int32 [batch, 1].

    The n-gram that reaches the budget is masked whatever its length: leaving out long
    ones there would make them rarer than drawn. The tokens beyond the budget (in
    renewal theory the overshoot, on average (E[l^2] / E[l] - 1) / 2 for a length l)
    are subtracted in advance.
    """
    lengths = ops.cast(lengths, "float32")
    tokens = ops.sum(lengths, axis=1, keepdims=True)
    squares = ops.sum(lengths**2, axis=1, keepdims=True)
    budget = rate * tokens - (squares / ops.maximum(tokens, 1.0) - 1) / 2
    # Nothing lies beyond all tokens.
    budget = ops.where(rate < 1, budget, tokens)
    # Rounded up or down at random: the average is the budget.
    rounded = ops.floor(budget + keras.random.uniform(ops.shape(budget), seed=draws))
    return ops.maximum(ops.cast(rounded, "int32"), 1)


def _inner_labels(
    token_ids: Tensor, word_starts: Tensor, inner_label_ids: list[int]
) -> Tensor:
    """Return the label of each token, int32 [batch, time]."""
    labels = ops.take(
        ops.convert_to_tensor(inner_label_ids, "int32"), token_ids, axis=0
    )
    has_label = labels >= 0
    words = ops.cumsum(ops.cast(word_starts, "int32"), axis=1)
    # [batch, words] whether the first token of a word has a label.
    limit = ops.shape(token_ids)[1] + 1
    begun = _row_counts(ops.where(word_starts & has_label, words, 0), limit) > 0
    within = ops.take_along_axis(begun, words, axis=1) & (words > 0) & ~word_starts
    return ops.where(within & has_label, labels, token_ids)


def _row_counts(numbers: Tensor, limit: Tensor | int) -> Tensor:
    """Count each number from 0 to `limit` - 1 in each row."""
    rows = ops.shape(numbers)[0]
    flat = ops.reshape(numbers + limit * ops.arange(rows)[:, None], [-1])
    counts = ops.segment_sum(ops.ones_like(flat), flat, rows * limit)
    return ops.reshape(counts, [rows, limit])


def _shifted(values: Tensor) -> Tensor:
    """Return the value of the token before, 0 for the first."""
    return ops.pad(values, [[0, 0], [1, 0]])[:, :-1]


def mask_settings(sequence_length: int, **given: Any) -> dict[str, Any]:
    """Return arguments of `WholeWordMaskGenerator.for_tokenizer`: given or defaults.

    The default maximum of predictions is a quarter more than the rate.
    """
    given = {name: value for name, value in given.items() if value is not None}
    settings = {**MASK_DEFAULTS, **given}
    if settings["mask_selection_length"] is None:
        rate = np.max(settings["mask_selection_rate"])
        rate = min(1.25 * rate, 1.0)
        settings["mask_selection_length"] = math.ceil(rate * sequence_length)
    return settings


def check_has_mask(tokenizer: keras_hub.tokenizers.Tokenizer) -> None:
    """Raise if a vocabulary has no token for masks."""
    if tokenizer.mask_token_id is None:
        raise AlbertError(
            f"The vocabulary has no {tokenizer.mask_token}, which masking needs. "
            "Add it as a line, or use the vocabulary of a release."
        )
