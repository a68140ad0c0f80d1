from typing import Any, Self

import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.layers.common import arguments_of
from albert_tf.preprocessing.segment_packer import (
    PackedTexts,
    SegmentPacker,
    warn_of_truncation,
)
from albert_tf.preprocessing.texts import Texts, as_segments, in_threads
from albert_tf.tokenizers.word_piece_tokenizer import WordPieceTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifierPreprocessor(keras_hub.models.Preprocessor):
    """Tokenize and pack strings or pairs of strings for `AlbertBackbone`.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        sequence_length: int. Maximum number of tokens per example, special tokens
            included. Longer texts are truncated.
        padding: `"longest"` (of the batch) or `"max_length"`.
        pad_to_multiple_of: int. See `SegmentPacker`.

    Call arguments:
        x: a string, a list or tensor of strings [batch], or for pairs the tuple of two
            such lists. A dict with the keys `token_ids`, `segment_ids`, `padding_mask`
            passes unchanged.
        y: optional labels, passed on.
        sample_weight: optional weights, passed on.

    Returns:
        A dict of int32 tensors [batch, time], or [time] for a single string; with `y`
        or `sample_weight` a tuple of all.

    Raises:
        TypeError: if `x` does not hold strings.
        AlbertError: if the lists of a pair differ in length.

    Example:
    ```python
    vocabulary = "examples/albert_micro_zh/vocab.txt"
    tokenizer = albert_tf.tokenizers.WordPieceTokenizer(vocabulary)
    preprocessor = albert_tf.preprocessing.AlbertTextClassifierPreprocessor(tokenizer)
    preprocessor(["很好", "太差了"])
    preprocessor((["你好吗", "几点了"], ["你还好吗", "什么时间"]))
    ```
    """

    backbone_cls = AlbertBackbone
    tokenizer_cls = WordPieceTokenizer
    packer_cls = SegmentPacker
    not_in_config: tuple[str, ...] = ("tokenizer",)

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = 512,
        padding: str = "longest",
        pad_to_multiple_of: int = 8,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.padding = padding
        self.pad_to_multiple_of = pad_to_multiple_of
        self._traced_pack = self._traced_pack_key = None

    @property
    def packer(self) -> SegmentPacker:
        # Not built before: the vocabulary of a preset is loaded after `__init__`.
        return self.packer_cls(
            self.tokenizer.cls_token_id,
            self.tokenizer.sep_token_id,
            self.tokenizer.pad_token_id,
            sequence_length=self.sequence_length,
            padding=self.padding,
            pad_to_multiple_of=self.pad_to_multiple_of,
        )

    @classmethod
    def _add_missing_kwargs(cls, loader, kwargs):
        # A preset with a backbone alone may have fewer positions than the default.
        positions = loader.config["config"].get("max_sequence_length", 512)
        kwargs.setdefault("sequence_length", min(512, positions))
        return super()._add_missing_kwargs(loader, kwargs)

    def __call__(self, x, y=None, sample_weight=None):
        # By keyword: KerasHub would take a lone tuple for (x, y), not a pair.
        return super().__call__(x, y=y, sample_weight=sample_weight)

    def call(self, x, y=None, sample_weight=None):
        if not isinstance(x, dict):
            segments = as_segments(x)
            single = segments[0].shape.rank == 0
            if single:
                segments = tuple(segment[tf.newaxis] for segment in segments)
            x = self.packer.pad(*self.pack(segments))
            if single:
                x = {name: value[0] for name, value in x.items()}
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack(self, x: Texts) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Tokenize a batch and return the results of `SegmentPacker.pack`."""
        return self.packer.pack([self.tokenize(segment) for segment in as_segments(x)])

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of texts [batch], without special tokens."""
        return self.tokenizer(texts)

    def pack_texts(self, x: Texts) -> PackedTexts:
        """Tokenize and pack lists of texts in threads, and warn of truncation."""
        segments = as_segments(x)
        pack = self._pack_function(len(segments))
        tokens, first_lengths, is_long = in_threads(pack, *segments)
        warn_of_truncation(is_long, self.sequence_length)
        return PackedTexts(tokens=tokens, first_lengths=first_lengths)

    def _pack_function(self, num_segments):
        """Return a traced function of strings to packed tokens and which are long."""
        packer = self.packer
        key = (num_segments, packer, self.tokenizer.fingerprint)
        # Tracing takes longer than tokenizing a thousand texts.
        if self._traced_pack_key == key:
            return self._traced_pack

        # Without AutoGraph, which has nothing to convert and takes half of the tracing.
        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string)] * num_segments,
            autograph=False,
        )
        def pack(*texts):
            parts = [self.tokenize(text) for text in texts]
            is_long = packer.full_lengths(parts) > packer.sequence_length
            return *packer.pack(parts), is_long

        self._traced_pack, self._traced_pack_key = pack, key
        return pack

    def with_tokenizer(self, tokenizer: keras_hub.tokenizers.Tokenizer) -> Self:
        """Return a preprocessor with the same settings and another tokenizer."""
        return type(self).from_config({**self.get_config(), "tokenizer": tokenizer})

    def get_config(self):
        base = AlbertTextClassifierPreprocessor
        return {**super().get_config(), **arguments_of(self, base, *self.not_in_config)}
