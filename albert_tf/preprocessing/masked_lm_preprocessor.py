from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from albert_tf.preprocessing.marked_labels import marked_tokens
from albert_tf.preprocessing.masked_batches import (
    PREDICTIONS_STEP,
    most_predictions,
    trimmed,
    with_mean_one,
)
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import Texts, as_segments
from albert_tf.preprocessing.whole_word_mask_generator import WholeWordMaskGenerator
from albert_tf.preprocessing.words import tokens_that_begin_words
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMaskedLMPreprocessor(AlbertTextClassifierPreprocessor):
    """Texts with `[MASK]` in them to what a masked language model fills.

    A call finds the masks that the texts have. `masked` draws masks, as
    `AlbertMaskedLM.fit` needs them (KerasHub's preprocessor does that at every call).

    Args:
        tokenizer, sequence_length, padding, pad_to_multiple_of: as for
            `AlbertTextClassifierPreprocessor`. The vocabulary must have `[MASK]`.
        mask_selection_rate: float. The share of the tokens that `masked` masks.
        ngram: int. Most words that are masked together.
        mask_token_rate, random_token_rate: floats, as for `WholeWordMaskGenerator`.
        marked_labels: bool. Whether `##` and a character means the character within a
            word, as in the labels albert_zh was trained with. Without effect where the
            vocabulary has no such tokens.
        segmenter: optional function of a string that returns its words, such as
            `zh.Jieba()`, for masks of whole words. Without it each token is a word.
            A function, and so not kept in files.

    Call arguments:
        x: as for `AlbertTextClassifierPreprocessor`.

    Returns:
        The dict of `AlbertTextClassifierPreprocessor`, and `mask_positions`, int32
        [batch, masks] ([masks] for a single string): where the masks stand, then 0.

    Example:
    ```python
    preprocessor = AlbertMaskedLMPreprocessor(WordPieceTokenizer("vocab.txt"))
    preprocessor(["今天[MASK]气很好"])["mask_positions"]  # [[3]]
    features, labels, weights = preprocessor.masked(["今天天气很好"])
    ```
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = 512,
        padding: str = "longest",
        pad_to_multiple_of: int = 8,
        mask_selection_rate: float = 0.15,
        ngram: int = 3,
        mask_token_rate: float = 0.8,
        random_token_rate: float = 0.1,
        marked_labels: bool = False,
        segmenter: Callable[[str], list[str]] | None = None,
        **kwargs: Any,
    ):
        super().__init__(
            tokenizer, sequence_length, padding, pad_to_multiple_of, **kwargs
        )
        self.mask_selection_rate = mask_selection_rate
        self.ngram = ngram
        self.mask_token_rate = mask_token_rate
        self.random_token_rate = random_token_rate
        self.marked_labels = marked_labels
        self.segmenter = segmenter
        self._draw_masks = self._draw_masks_key = None

    @property
    def has_marked_labels(self) -> bool:
        """Whether there are labels with `##`, in the settings and the vocabulary."""
        return self.marked_labels and bool(marked_tokens(self.tokenizer))

    def call(self, x, y=None, sample_weight=None):
        features = super().call(x)
        if "mask_positions" not in features:
            features = self.with_mask_positions(features)
        return keras.utils.pack_x_y_sample_weight(features, y, sample_weight)

    def with_mask_positions(self, features: dict[str, Any]) -> dict[str, tf.Tensor]:
        """The features, and where their masks stand, one place for them at least."""
        is_mask = tf.equal(features["token_ids"], self.tokenizer.mask_token_id)
        counts = tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=-1)
        most = tf.maximum(tf.reduce_max(counts), 1)
        # Of equal values `top_k` gives the first in the text first.
        positions = tf.math.top_k(tf.cast(is_mask, tf.float32), most).indices
        there = tf.gather(is_mask, positions, batch_dims=is_mask.shape.rank - 1)
        return {**features, "mask_positions": tf.where(there, positions, 0)}

    def masked(
        self,
        x: Texts | dict[str, tf.Tensor],
        word_starts: tf.Tensor | None = None,
        sample_weight: tf.Tensor | None = None,
        seed: Any = None,
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """A batch to train on, with masks of its own.

        Args:
            x: texts, or the features of texts that were packed.
            word_starts: for features, int tensor [batch, time]: not 0 where a word
                begins. By default each token is a word.
            sample_weight: optional float tensor [batch].
            seed: optional int tensor [2]: the same seed draws the same masks.

        Returns:
            Features as of a call, the labels int32 [batch, masks], and their weights
            float32 [batch, masks], whose mean over all places is 1.
        """
        features = x
        if not isinstance(x, dict):
            features = self.packer.pad(*self.pack(x))
            shape = tf.shape(features["token_ids"], tf.int64)
            word_starts = self.word_starts(x).to_tensor(1, shape=shape)
        masks = self._mask_generator()(features["token_ids"], word_starts, seed)
        names = ("mask_positions", "mask_ids", "mask_weights")
        masks = trimmed(masks, "mask_weights", PREDICTIONS_STEP, names)
        weights = masks["mask_weights"]
        if sample_weight is not None:
            weights *= tf.cast(sample_weight, weights.dtype)[:, tf.newaxis]
        features = {
            **features,
            "token_ids": masks["token_ids"],
            "mask_positions": masks["mask_positions"],
        }
        return features, masks["mask_ids"], with_mean_one(weights)

    def word_starts(self, x: Texts) -> tf.RaggedTensor:
        """1 where a word begins, int32 [examples, (tokens)], packed as the ids are."""
        if self.segmenter is None:
            return tf.ones_like(self.pack(x)[0])
        packer = dataclasses.replace(self.packer, cls_token_id=1, sep_token_id=1)
        starts = [self._word_starts(segment) for segment in as_segments(x)]
        return packer.pack(starts)[0]

    def tokenize(self, texts):
        if self.tokenizer.mask_token_id is None:
            raise AlbertError(
                f"The vocabulary has no {self.tokenizer.mask_token}, which a masked "
                "language model fills. Add it as a line, or use the vocabulary of a "
                "release."
            )
        parts = tf.strings.split(texts, self.tokenizer.mask_token)
        ids = tf.cast(self.tokenizer(parts), tf.int32)
        return _joined(ids, self.tokenizer.mask_token_id)

    def _word_starts(self, texts):
        parts = tf.strings.split(texts, self.tokenizer.mask_token)
        _, starts, ends = self.tokenizer.tokenize_with_offsets(parts)

        def segment(rows, starts, ends, lengths):
            rows = [row.decode("utf-8", "ignore") for row in rows]
            begins = tokens_that_begin_words(
                rows, starts, ends, lengths, self.segmenter
            )
            return begins.astype("int32")

        begins = tf.numpy_function(
            segment,
            [
                *(parts.flat_values, starts.flat_values, ends.flat_values),
                starts.values.row_lengths(),
            ],
            tf.int32,
        )
        return _joined(starts.with_flat_values(tf.ensure_shape(begins, [None])), 1)

    def _mask_generator(self):
        """A function that draws masks; made once, for it holds a state."""
        settings = {
            "mask_selection_rate": self.mask_selection_rate,
            "mask_selection_length": most_predictions(
                self.sequence_length, self.mask_selection_rate
            ),
            "ngram": self.ngram,
            "mask_token_rate": self.mask_token_rate,
            "random_token_rate": self.random_token_rate,
            "marked_labels": self.has_marked_labels,
        }
        key = (settings, self.tokenizer.fingerprint)
        if self._draw_masks_key != key:
            # Not into the graph of a dataset, if it is asked for there.
            with tf.init_scope():
                generator = WholeWordMaskGenerator.for_tokenizer(
                    self.tokenizer, **settings
                )
            # Not by `__call__`: Keras may be on another backend than TensorFlow.
            self._draw_masks, self._draw_masks_key = generator.call, key
        return self._draw_masks

    def with_tokenizer(self, tokenizer):
        other = super().with_tokenizer(tokenizer)
        other.segmenter = self.segmenter
        return other

    def get_config(self):
        return {
            **super().get_config(),
            "mask_selection_rate": self.mask_selection_rate,
            "ngram": self.ngram,
            "mask_token_rate": self.mask_token_rate,
            "random_token_rate": self.random_token_rate,
            "marked_labels": self.marked_labels,
        }


def _joined(parts, between):
    """[batch, parts, (tokens)] as [batch, (tokens)], a value between two parts."""
    column = tf.fill([parts.values.nrows(), 1], between)
    closed = tf.concat([parts.values, column], axis=1)
    splits = tf.gather(closed.row_splits, parts.row_splits)
    return tf.RaggedTensor.from_row_splits(closed.values, splits)[:, :-1]
