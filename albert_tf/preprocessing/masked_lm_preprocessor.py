"""Preprocessor of masked language models, which masks texts or finds their masks."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from albert_tf.layers.whole_word_mask_generator import (
    WholeWordMaskGenerator,
    check_has_mask,
    mask_settings,
)
from albert_tf.preprocessing.text_preprocessors import (
    AlbertTextClassifierPreprocessor,
    in_batch,
)
from albert_tf.preprocessing.texts import Texts, as_segments
from albert_tf.tokenizers.text_tokenizer import join_parts
from albert_tf_lite.packing import round_up
from albert_tf_lite.words import label_tokens, tokens_that_begin_words

# Numbers of predictions are rounded up, because JAX compiles each shape.
PREDICTIONS_STEP = 8
# Masks of the preprocessor, with their types.
_MASKS = {
    "mask_positions": tf.int32,
    "mask_ids": tf.int32,
    "mask_weights": tf.float32,
}


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMaskedLMPreprocessor(AlbertTextClassifierPreprocessor):
    """Tokenize, pack and mask texts for `AlbertMaskedLM`.

    As with KerasHub's preprocessor of this name, a call masks tokens at random and
    returns `(x, y, sample_weight)` of a fixed number of masks. `features` finds the
    `[MASK]` in the texts instead, to fill them.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer` with `[MASK]`.
        sequence_length: int. Maximum number of tokens per example, special tokens
            included.
        mask_selection_rate: float. The share of the tokens to mask.
        mask_selection_length: optional int. Maximum number of masks per text, the
            width of `mask_positions`. By default a quarter more than the rate.
        ngram: int. Maximum number of words masked together.
        mask_token_rate: float. The share of the tokens to predict that become `[MASK]`.
        random_token_rate: float. The share of them that become a random other token.
        marked_labels: bool. Label a character within a word by `##` and the character,
            as in the training of albert_zh, if the vocabulary has such tokens.
        segmenter: optional function of a string that returns its words, such as
            `zh.Jieba()`, for masks of whole words. By default each token is a word.
            Not saved in files.
        **kwargs: `padding` (`"longest"` or `"max_length"`) and `pad_to_multiple_of` of
            `AlbertTextClassifierPreprocessor`.

    Call arguments:
        x: a string, a list or tensor of strings [batch], or for pairs the tuple of two
            such lists. A dict with `mask_positions` passes unchanged, with `y` and
            `sample_weight`, which else are ignored.

    Returns:
        The tuple of the dict of `AlbertTextClassifierPreprocessor`, masked, with
        `mask_positions`; the tokens to predict, int32; and 1.0 for each prediction,
        0.0 for padding, float32. The last three are [batch, mask_selection_length],
        without the batch for a single string.

    Raises:
        AlbertError: if the vocabulary has no `[MASK]`.

    Example:
    ```python
    vocabulary = "examples/albert_micro_zh/vocab.txt"
    tokenizer = albert_tf.tokenizers.WordPieceTokenizer(vocabulary)
    preprocessor = albert_tf.preprocessing.AlbertMaskedLMPreprocessor(tokenizer)
    features, labels, weights = preprocessor(["今天天气很好"])
    preprocessor.features(["今天[MASK]气很好"])["mask_positions"]  # [[3]]
    ```
    """

    not_in_config = ("tokenizer", "segmenter")

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = 512,
        mask_selection_rate: float = 0.15,
        mask_selection_length: int | None = None,
        ngram: int = 3,
        mask_token_rate: float = 0.8,
        random_token_rate: float = 0.1,
        marked_labels: bool = False,
        segmenter: Callable[[str], list[str]] | None = None,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length, **kwargs)
        self.mask_selection_rate = mask_selection_rate
        self.mask_selection_length = mask_selection_length
        self.ngram = ngram
        self.mask_token_rate = mask_token_rate
        self.random_token_rate = random_token_rate
        self.marked_labels = marked_labels
        self.segmenter = segmenter

    @property
    def label_tokens(self) -> list[int] | None:
        """The token of each label; `None` without marked labels."""
        if not self.marked_labels or self.tokenizer is None:
            return None
        return label_tokens(self.tokenizer.get_vocabulary())

    def call(self, x, y=None, sample_weight=None):
        if not isinstance(x, dict):
            return _unpacked(in_batch(self._with_masks, self.parts(x)))
        if "mask_positions" not in x:
            return _unpacked(self._with_masks(x))
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def features(self, x):
        """Return the inputs of the model for texts that contain masks.

        `mask_positions` are int32 [batch, masks]: the positions of the masks, then 0.
        """
        features = super().features(x)
        if "mask_positions" in features:
            return features
        return self.with_mask_positions(features)

    def with_mask_positions(self, features: dict[str, Any]) -> dict[str, tf.Tensor]:
        """Return the features and the positions of their masks, at least one column."""
        is_mask = tf.equal(features["token_ids"], self.tokenizer.mask_token_id)
        counts = tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=-1)
        most = tf.maximum(tf.reduce_max(counts), 1)
        # `top_k` returns equal values in text order.
        positions = tf.math.top_k(tf.cast(is_mask, tf.float32), most).indices
        positions *= tf.sequence_mask(counts, most, tf.int32)
        return {**features, "mask_positions": positions}

    def masked(
        self,
        x: Texts | dict[str, tf.Tensor],
        word_starts: tf.Tensor | None = None,
        sample_weight: tf.Tensor | None = None,
        seed: tf.Tensor | None = None,
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Draw masks for a training batch, without columns that no text needs.

        Args:
            x: texts, or the features of packed texts.
            word_starts: for features, optional int tensor [batch, time]; see
                `WholeWordMaskGenerator`.
            sample_weight: optional float tensor [batch] or [batch, 1].
            seed: optional int tensor [2]. The same seed draws the same masks.

        Returns:
            The features of a call, the labels int32 [batch, masks], and their weights
            float32 [batch, masks] with the mean 1.
        """
        batch = self._with_masks(x, word_starts, seed)
        weights = batch["mask_weights"]
        used = tf.reduce_max(tf.reduce_sum(tf.cast(weights, tf.int32), axis=1))
        columns = round_up(tf.maximum(used, 1), PREDICTIONS_STEP)
        for name in _MASKS:
            batch[name] = batch[name][:, :columns]
        weights = batch["mask_weights"]
        if sample_weight is not None:
            weights *= tf.reshape(tf.cast(sample_weight, weights.dtype), [-1, 1])
        # So that Keras' mean over all places is that over the predictions.
        weights /= tf.maximum(tf.reduce_mean(weights), 1e-6)
        return _unpacked({**batch, "mask_weights": weights})

    def _with_masks(self, x, word_starts=None, seed=None):
        if isinstance(x, dict):
            features = x
        else:
            features = self.packer.pad(*self.pack(x))
            shape = tf.shape(features["token_ids"], tf.int64)
            word_starts = self.word_starts(x).to_tensor(1, shape=shape)
        if word_starts is None:
            word_starts = tf.ones_like(features["token_ids"])
        inputs = [features["token_ids"], word_starts]
        if seed is not None:
            inputs.append(seed)
        return {**features, **self._draw(*inputs)}

    def _draw(self, *inputs):
        """Draw masks in `tf.data` on every backend of Keras."""
        if keras.backend.backend() == "tensorflow":
            # `__call__` would convert the tensors for Keras' backend.
            return self.mask_generator.call(*inputs)

        def draw(*inputs):
            masked = self.mask_generator.call(*inputs)
            return [keras.ops.convert_to_numpy(masked[name]) for name in types]

        types = {"token_ids": tf.int32, **_MASKS}
        drawn = tf.numpy_function(draw, inputs, list(types.values()))
        return {
            name: tf.ensure_shape(values, [None, None])
            for name, values in zip(types, drawn, strict=True)
        }

    def word_starts(self, x: Texts) -> tf.RaggedTensor:
        """Return 1 where a word begins, int32 [examples, (tokens)], packed like ids."""
        if self.segmenter is None:
            return tf.ones_like(self.pack(x)[0])
        packer = dataclasses.replace(self.packer, cls_token_id=1, sep_token_id=1)
        starts = [self._word_starts(segment) for segment in as_segments(x)]
        return packer.pack(starts)[0]

    def tokenize(self, texts):
        check_has_mask(self.tokenizer)
        runs = tf.strings.split(texts, self.tokenizer.mask_token)
        ids = tf.cast(self.tokenizer(runs), tf.int32)
        return join_parts(ids, self.tokenizer.mask_token_id)

    def _word_starts(self, texts):
        """Return 1 for tokens that begin a word, int32 [batch, (tokens)]."""
        # [batch, (runs)], the text between two masks.
        runs = tf.strings.split(texts, self.tokenizer.mask_token)
        _, starts, ends = self.tokenizer.tokenize_with_offsets(runs)

        def segment(runs, starts, ends, lengths):
            texts = [run.decode("utf-8", "ignore") for run in runs]
            begins = tokens_that_begin_words(
                texts, starts, ends, lengths, self.segmenter
            )
            return begins.astype("int32")

        arguments = [
            runs.flat_values,
            starts.flat_values,
            ends.flat_values,
            starts.values.row_lengths(),
        ]
        begins = tf.numpy_function(segment, arguments, tf.int32)
        # A mask begins a word, too.
        return join_parts(starts.with_flat_values(tf.ensure_shape(begins, [None])), 1)

    # Cached, because it has a state.
    @functools.cached_property
    def mask_generator(self) -> WholeWordMaskGenerator:
        """The generator of the masks, with these settings."""
        settings = mask_settings(
            self.sequence_length,
            mask_selection_rate=self.mask_selection_rate,
            mask_selection_length=self.mask_selection_length,
            ngram=self.ngram,
            mask_token_rate=self.mask_token_rate,
            random_token_rate=self.random_token_rate,
            marked_labels=self.label_tokens is not None,
        )
        # Outside of the graph of a dataset that calls this.
        with tf.init_scope():
            return WholeWordMaskGenerator.for_tokenizer(self.tokenizer, **settings)

    def with_tokenizer(self, tokenizer):
        other = super().with_tokenizer(tokenizer)
        other.segmenter = self.segmenter
        return other


def _unpacked(batch):
    """Return the features, labels and weights of features and their masks."""
    inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    features = {name: batch[name] for name in inputs}
    return features, batch["mask_ids"], batch["mask_weights"]
