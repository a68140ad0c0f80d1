from __future__ import annotations

import concurrent.futures
import os
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.texts import Texts, as_segments
from albert_tf.tokenizers.word_piece_tokenizer import WordPieceTokenizer
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifierPreprocessor(keras_hub.models.Preprocessor):
    """Strings or pairs of strings in, what `AlbertBackbone` takes out.

    Args:
        tokenizer: a `WordPieceTokenizer` or a `SentencePieceTokenizer`.
        sequence_length: int. Most tokens of an example, the special ones
            included. Longer texts are cut.
        padding: `"longest"` (of the batch) or `"max_length"`.
        pad_to_multiple_of: int. See `SegmentPacker`.

    Call arguments:
        x: a string, a list or tensor of strings [batch], or for pairs the tuple
            of two such lists. Or a dict with the keys `token_ids`,
            `segment_ids`, `padding_mask`, which passes unchanged.
        y: optional labels, passed on.
        sample_weight: optional weights, passed on.

    Returns:
        A dict of int32 tensors [batch, time], or [time] for a single string;
        with `y` or `sample_weight` the tuple of all.

    Example:
    ```python
    preprocessor = AlbertTextClassifierPreprocessor(WordPieceTokenizer("vocab.txt"))
    preprocessor(["很好", "太差了"])
    preprocessor((["你好吗", "几点了"], ["你还好吗", "什么时间"]))
    ```
    """

    backbone_cls = AlbertBackbone
    tokenizer_cls = WordPieceTokenizer

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
        self._packing = self._packing_key = None

    @property
    def packer(self) -> SegmentPacker:
        """The `SegmentPacker`; built when asked for, as a tokenizer restored
        from a preset gets its vocabulary later."""
        return SegmentPacker(
            self.tokenizer.cls_token_id,
            self.tokenizer.sep_token_id,
            self.tokenizer.pad_token_id,
            sequence_length=self.sequence_length,
            padding=self.padding,
            pad_to_multiple_of=self.pad_to_multiple_of,
        )

    @classmethod
    def _add_missing_kwargs(cls, loader, kwargs):
        # For a preset that holds a backbone alone, which may have fewer positions
        # than there are tokens by default.
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
                segments = [segment[tf.newaxis] for segment in segments]
            x = self.packer.pad(*self.pack(tuple(segments)))
            if single:
                x = {name: value[0] for name, value in x.items()}
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack(self, x: Texts) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Tokenize a batch; what `SegmentPacker.pack` gives."""
        segments = as_segments(x)
        return self.packer.pack([self.tokenize(segment) for segment in segments])

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """The ids of texts [batch], without special tokens."""
        return self.tokenizer(texts)

    def tokenize_and_pack(
        self, x: Texts, chunk: int = 1024
    ) -> tuple[tf.RaggedTensor, tf.Tensor, int]:
        """Tokenize all texts once, without padding, `chunk` at a time in each thread.

        Returns:
            What `SegmentPacker.pack` gives, and how many examples were cut to
            `sequence_length`, an int.
        """
        segments = as_segments(x)
        function = self._packing_function(len(segments))
        starts = range(0, max(len(segments[0]), 1), chunk)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            packed = threads.map(
                lambda start: function(*(s[start : start + chunk] for s in segments)),
                starts,
            )
            tokens, first_lengths, cut = zip(*packed, strict=True)
        return (
            tf.concat(tokens, axis=0),
            tf.concat(first_lengths, axis=0),
            sum(int(count) for count in cut),
        )

    def _packing_function(self, num_segments):
        """Traced once, for tracing takes longer than tokenizing a thousand texts."""
        packer = self.packer
        key = (num_segments, packer, self.tokenizer.fingerprint)
        if self._packing_key == key:
            return self._packing

        # Without AutoGraph, which has nothing to convert and takes half of the tracing.
        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string)] * num_segments,
            autograph=False,
        )
        def pack(*texts):
            parts = [self.tokenize(text) for text in texts]
            # A second text without tokens gets no [SEP].
            length = parts[0].row_lengths() + 2
            for part in parts[1:]:
                length += part.row_lengths() + tf.minimum(part.row_lengths(), 1)
            cut = tf.reduce_sum(tf.cast(length > packer.sequence_length, tf.int32))
            return *packer.pack(parts), cut

        self._packing, self._packing_key = pack, key
        return pack

    def with_tokenizer(
        self, tokenizer: keras_hub.tokenizers.Tokenizer
    ) -> AlbertTextClassifierPreprocessor:
        """A preprocessor of the same settings with another tokenizer."""
        return type(self).from_config({**self.get_config(), "tokenizer": tokenizer})

    def get_config(self):
        return {
            **super().get_config(),
            "sequence_length": self.sequence_length,
            "padding": self.padding,
            "pad_to_multiple_of": self.pad_to_multiple_of,
        }


def check_fits(preprocessor: Any, backbone: AlbertBackbone) -> None:
    """Check that a backbone has the positions and the vocabulary of a preprocessor."""
    tokenizer = getattr(preprocessor, "tokenizer", None)
    if tokenizer is None:
        return
    if preprocessor.sequence_length > backbone.max_sequence_length:
        raise AlbertError(
            f"The preprocessor's sequence_length={preprocessor.sequence_length} is "
            f"more than the {backbone.max_sequence_length} positions of the model."
        )
    # A tokenizer restored from a preset has no vocabulary yet.
    if tokenizer.pad_token_id is None:
        return
    if tokenizer.vocabulary_size() != backbone.vocabulary_size:
        raise AlbertError(
            f"The vocabulary has {tokenizer.vocabulary_size()} tokens, the model "
            f"{backbone.vocabulary_size}. Use the {tokenizer.original_file_name} "
            "that the checkpoint was trained with."
        )
