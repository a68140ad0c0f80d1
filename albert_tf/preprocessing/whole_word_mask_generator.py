import random

import keras
import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.marked_labels import inner_labels, marked_label_ids
from albert_tf.preprocessing.ngrams import choose_tokens, cut_into_ngrams
from albert_tf_lite.errors import AlbertError

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
    """Masks n-grams of whole words, for masked language modelling.

    The words of a sequence are cut into n-grams whose lengths are drawn with
    p(n) = (1/n) / sum(1/k), which for n up to 3 is 6/11, 3/11, 2/11. N-grams are then
    chosen in random order until `mask_selection_rate` of the tokens is masked. An
    n-gram is masked whole or not at all and never reaches over an unselectable token.
    Since whole n-grams seldom add up to the rate, a sequence has a little more or less;
    on average it is the rate.

    As KerasHub's `MaskedLMMaskGenerator`, with words. In `tf.data` each epoch has
    masks of its own.

    Args:
        vocabulary_size: int.
        mask_selection_rate: float. The share of the tokens to predict.
        mask_token_id: int, the id of `[MASK]`.
        mask_selection_length: int. Most predictions of a sequence. What would not fit
            is left unmasked, never a part of a word.
        unselectable_token_ids: list of ints, such as those of `[CLS]`, `[SEP]` and
            `[PAD]`: never masked, nor put in place of others.
        mask_token_rate, random_token_rate: floats. What becomes of a token to predict:
            `[MASK]`, a random other token, or else it stays.
        ngram: int. Most words of an n-gram.
        whole_word: bool. `False` takes each token as a word, whatever `word_starts`
            says.
        inner_label_ids: optional list of `vocabulary_size` ints: the label of a token
            within a word, by its id; -1 for a token that is its own label, and begins
            words all of whose tokens are. By default the label is the token.

    Call arguments:
        token_ids: int tensor [batch, time].
        word_starts: optional int or bool tensor [batch, time], true where a word
            begins. By default each token is a word.
        seed: optional int tensor [2]. The same seed masks the same tokens. By default
            each call draws one.

    Returns:
        A dict of `token_ids` [batch, time], masked, and `mask_positions`, `mask_ids`
        (int32) and `mask_weights` (float32), [batch, mask_selection_length]: position
        and label of each prediction in the order of the text, and 1.0, or 0.0 where
        there is none.

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942);
        [SpanBERT](https://arxiv.org/abs/1907.10529);
        google-research/albert `create_pretraining_data.py`.
    """

    def __init__(
        self,
        vocabulary_size,
        mask_selection_rate,
        mask_token_id,
        mask_selection_length,
        unselectable_token_ids=(0,),
        mask_token_rate=0.8,
        random_token_rate=0.1,
        ngram=3,
        whole_word=True,
        inner_label_ids=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not 0 < mask_selection_rate < 1:
            raise AlbertError(
                "`mask_selection_rate` should be above 0 and below 1, such as 0.15. "
                f"Received: {mask_selection_rate}"
            )
        rates = (mask_token_rate, random_token_rate)
        if min(rates) < 0 or sum(rates) > 1 + 1e-9:
            raise AlbertError(
                "`mask_token_rate` and `random_token_rate` should not be below 0, and "
                f"together not above 1, such as 0.8 and 0.1. Received: {rates}"
            )
        for name, count in (
            ("mask_selection_length", mask_selection_length),
            ("ngram", ngram),
        ):
            if count < 1:
                raise AlbertError(f"`{name}` should be 1 at least. Received: {count}")
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
        # Its state outlives the iterators of a dataset. Those begin every epoch with
        # the same `tf.random.uniform`, if TensorFlow's global seed is set.
        self._seeds = tf.random.Generator.from_seed(random.getrandbits(31))

    @classmethod
    def for_tokenizer(
        cls,
        tokenizer,
        mask_selection_rate=0.15,
        mask_selection_length=20,
        marked_labels=False,
        **kwargs,
    ):
        """A generator for the vocabulary of a tokenizer.

        Args:
            tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
            mask_selection_rate, mask_selection_length: as above.
            marked_labels: bool. As labels of the Chinese characters of a word after its
                first, if that is one, too, `##` and the character, where the
                vocabulary has that: so albert_zh was trained.
            **kwargs: as above.

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

    def call(self, token_ids, word_starts=None, seed=None):
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
        chosen = choose_tokens(
            ngrams, self.mask_selection_rate, self.mask_selection_length, choose
        )
        labels = token_ids
        if self.inner_label_ids is not None:
            labels = inner_labels(token_ids, word_starts, self.inner_label_ids)
        return {
            "token_ids": tf.where(chosen, self._replace(token_ids, replace), token_ids),
            **self._predictions(chosen, labels),
        }

    def _is_selectable(self, token_ids):
        selectable = np.ones(self.vocabulary_size, bool)
        selectable[self.unselectable_token_ids] = False
        return tf.gather(tf.constant(selectable), token_ids)

    def _replace(self, token_ids, seed):
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

    def _predictions(self, chosen, labels):
        """The chosen tokens of each sequence, in the order of the text."""
        length = self.mask_selection_length
        more = [[0, 0], [0, tf.maximum(length - tf.shape(chosen)[1], 0)]]
        chosen, labels = tf.pad(chosen, more), tf.pad(labels, more)
        # Of equal values `top_k` gives the first in the text first.
        positions = tf.math.top_k(tf.cast(chosen, tf.float32), length).indices
        there = tf.gather(chosen, positions, batch_dims=1)
        ids = tf.gather(labels, positions, batch_dims=1)
        return {
            "mask_positions": tf.where(there, positions, 0),
            "mask_ids": tf.where(there, ids, 0),
            "mask_weights": tf.cast(there, tf.float32),
        }

    def get_config(self):
        return {**super().get_config(), **{x: getattr(self, x) for x in _CONFIG}}
