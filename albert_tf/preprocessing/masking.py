"""Draw masks for masked language modelling: from records and from texts."""

import math
import random
from collections.abc import Iterable
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.marked_labels import inner_labels, marked_label_ids
from albert_tf.preprocessing.ngrams import choose_tokens, cut_into_ngrams
from albert_tf_lite.errors import AlbertError

# ALBERT's settings. For the default of the length see `max_predictions`.
MASK_DEFAULTS: dict[str, Any] = {
    "mask_selection_rate": 0.15,
    "mask_selection_length": None,
    "ngram": 3,
    "marked_labels": False,
}
# Numbers of predictions are rounded up, because JAX compiles each shape.
PREDICTIONS_STEP = 8
_INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
_PREDICTIONS = ("mask_positions", "mask_ids", "mask_weights")
_CONFIG = (
    "vocabulary_size",
    "mask_selection_rate",
    "mask_token_id",
    "mask_selection_length",
    "unselectable_token_ids",
    "mask_token_rate",
    "random_token_rate",
    "ngram",
    "whole_word",
    "inner_label_ids",
)


@keras.saving.register_keras_serializable(package="albert_tf")
class WholeWordMaskGenerator(keras.layers.Layer):
    """Mask n-grams of whole words, for masked language modelling.

    The words of a sequence are divided into n-grams whose lengths are drawn with
    p(n) = (1/n) / sum(1/k), which for n up to 3 is 6/11, 3/11, 2/11. N-grams are then
    chosen in random order until `mask_selection_rate` of the tokens is masked. An
    n-gram is masked completely or not at all and never spans an unselectable token.
    Whole n-grams seldom add up to the rate, so that single sequences deviate from it;
    the average does not.

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
            `[PAD]`: never masked, and never a random replacement.
        mask_token_rate, random_token_rate: floats. The shares of the tokens to predict
            that become `[MASK]` or a random other token; the rest is kept.
        ngram: int. Maximum number of words per n-gram.
        whole_word: bool. `False` treats each token as a word and ignores
            `word_starts`.
        inner_label_ids: optional list of `vocabulary_size` ints: the label of a token
            within a word, by its id; -1 for a token that is its own label, and begins
            words all of whose tokens are. By default the label is the token.

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
    masked = masks([[2, 10, 11, 12, 13, 14, 15, 3]], seed=[1, 2])
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
        super().__init__(**kwargs)
        if not all(0 < rate < 1 for rate in _first_and_last(mask_selection_rate)):
            raise AlbertError(
                "`mask_selection_rate` must be above 0 and below 1, such as 0.15. "
                f"Received: {mask_selection_rate}"
            )
        rates = (mask_token_rate, random_token_rate)
        if min(rates) < 0 or sum(rates) > 1 + 1e-9:
            raise AlbertError(
                "`mask_token_rate` and `random_token_rate` must be at least 0, and "
                f"their sum at most 1, such as 0.8 and 0.1. Received: {rates}"
            )
        for name, count in (
            ("mask_selection_length", mask_selection_length),
            ("ngram", ngram),
        ):
            if count < 1:
                raise AlbertError(f"`{name}` must be at least 1. Received: {count}")
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
        ids = set(range(vocabulary_size)) - {*unselectable_token_ids, mask_token_id}
        self._random_ids = sorted(ids)
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

        Args:
            tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
            mask_selection_rate, mask_selection_length: as above.
            marked_labels: bool. Label Chinese characters within a Chinese word by `##`
                and the character where the vocabulary has that token, as albert_zh
                was trained.
            **kwargs: other arguments of the class.

        Raises:
            AlbertError: if the vocabulary has no mask token, or `marked_labels` is
                asked for and it has no Chinese character with `##`.
        """
        if tokenizer.mask_token_id is None:
            raise AlbertError(
                f"The vocabulary has no {tokenizer.mask_token}, which masking needs. "
                "Add it as a line, or use the vocabulary of a release."
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
            ],
            inner_label_ids=marked_label_ids(tokenizer) if marked_labels else None,
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
        if seed is None:
            seed = self._seeds.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
        word_starts = tf.cast(word_starts, tf.bool)
        seed = tf.convert_to_tensor(seed, tf.int32)
        cut, choose, replace = tf.unstack(tf.random.split(seed, 3))
        ngrams = cut_into_ngrams(
            self._is_selectable(token_ids), word_starts, self.ngram, cut
        )
        first, last = _first_and_last(self.mask_selection_rate)
        rate = first + (last - first) * progress
        chosen = choose_tokens(ngrams, rate, self.mask_selection_length, choose)
        labels = token_ids
        if self.inner_label_ids is not None:
            labels = inner_labels(token_ids, word_starts, self.inner_label_ids)
        return {
            "token_ids": tf.where(chosen, self._replace(token_ids, replace), token_ids),
            **self._predictions(chosen, labels),
        }

    def _is_selectable(self, token_ids: tf.Tensor) -> tf.Tensor:
        selectable = np.ones(self.vocabulary_size, bool)
        selectable[self.unselectable_token_ids] = False
        return tf.gather(tf.constant(selectable), token_ids)

    def _replace(self, token_ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        what_seed, id_seed = tf.unstack(tf.random.split(seed, 2))
        what = tf.random.stateless_uniform(tf.shape(token_ids), what_seed)
        random_ids = tf.gather(
            tf.constant(self._random_ids, tf.int32),
            tf.random.stateless_uniform(
                tf.shape(token_ids), id_seed, 0, len(self._random_ids), tf.int32
            ),
        )
        changed = self.mask_token_rate + self.random_token_rate
        return tf.where(
            what < self.mask_token_rate,
            self.mask_token_id,
            tf.where(what < changed, random_ids, token_ids),
        )

    def _predictions(
        self, chosen: tf.Tensor, labels: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Return the chosen tokens of each sequence in text order."""
        length = self.mask_selection_length
        more = [[0, 0], [0, tf.maximum(length - tf.shape(chosen)[1], 0)]]
        chosen, labels = tf.pad(chosen, more), tf.pad(labels, more)
        # `top_k` returns equal values in text order.
        positions = tf.math.top_k(tf.cast(chosen, tf.float32), length).indices
        is_chosen = tf.gather(chosen, positions, batch_dims=1)
        ids = tf.gather(labels, positions, batch_dims=1)
        return {
            "mask_positions": tf.where(is_chosen, positions, 0),
            "mask_ids": tf.where(is_chosen, ids, 0),
            "mask_weights": tf.cast(is_chosen, tf.float32),
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{x: getattr(self, x) for x in _CONFIG}}


def max_predictions(sequence_length: int, rate: float | tuple[float, float]) -> int:
    """Return the maximum number of predictions: a quarter more than the rate."""
    rate = max(_first_and_last(rate))
    # The mask generator refuses other rates.
    return math.ceil(1.25 * (rate if 0 < rate < 1 else 0.0) * sequence_length)


def mask_settings(sequence_length: int, **given: Any) -> dict[str, Any]:
    """Return arguments of `WholeWordMaskGenerator.for_tokenizer`: given or defaults."""
    given = {name: value for name, value in given.items() if value is not None}
    settings = {**MASK_DEFAULTS, **given}
    if settings["mask_selection_length"] is None:
        settings["mask_selection_length"] = max_predictions(
            sequence_length, settings["mask_selection_rate"]
        )
    return settings


def masked_features(
    batch: dict[str, tf.Tensor],
    sample_weight: tf.Tensor | None = None,
    trims: bool = True,
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Return the features, labels and weights of a masked batch.

    The weights of the predictions have the mean 1, so that Keras' mean over all places
    is that over the predictions. This is not left to the loss, since devices that
    share a batch have different numbers of predictions. `trims` leaves out the columns
    without a prediction.
    """
    if trims:
        batch = trimmed(batch, "mask_weights", PREDICTIONS_STEP, _PREDICTIONS)
    weights = batch["mask_weights"]
    if sample_weight is not None:
        weights *= tf.cast(sample_weight, weights.dtype)[:, tf.newaxis]
    weights /= tf.maximum(tf.reduce_mean(weights), 1e-6)
    return {name: batch[name] for name in _INPUTS}, batch["mask_ids"], weights


def trimmed(
    batch: dict[str, tf.Tensor], mask: str, step: int, names: tuple[str, ...]
) -> dict[str, tf.Tensor]:
    """Return a batch without the last columns of `names` in which no `mask` is set."""
    used = tf.reduce_max(tf.reduce_sum(tf.cast(batch[mask], tf.int32), axis=1))
    columns = tf.maximum((used + step - 1) // step, 1) * step
    return {
        name: values[:, :columns] if name in names else values
        for name, values in batch.items()
    }


def _first_and_last(rate: float | tuple[float, float]) -> tuple[float, float]:
    first, last = rate if isinstance(rate, (tuple, list)) else (rate, rate)
    return first, last
