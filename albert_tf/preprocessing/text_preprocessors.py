"""Preprocessors of tasks that read texts, pairs of texts, or windows of long texts."""

import os
from collections.abc import Callable
from typing import Any, Self, TypeAlias

import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.files import complete_directory
from albert_tf.layers.arguments import arguments_of, check_arguments
from albert_tf.preprocessing.segment_packer import (
    PackedTexts,
    SegmentPacker,
    WindowedTexts,
    warn_of_truncation,
)
from albert_tf.preprocessing.texts import (
    Texts,
    as_segments,
    check_parts,
    in_threads,
    tokenize_with_offsets,
    warn_of_unknown,
)
from albert_tf.tokenizers.word_piece_tokenizer import WordPieceTokenizer
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts, check_integer
from albert_tf_lite.packing import QUESTION_SPECIAL, SHARED, question_limit

# The parts of examples in containers of any kind, which are checked when they are read.
Parts: TypeAlias = Any


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifierPreprocessor(keras_hub.models.Preprocessor):
    """Tokenize and pack strings or pairs of strings for `AlbertBackbone`.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        sequence_length: int. Maximum number of tokens per example, special tokens
            included. Longer texts are truncated.
        padding: `"longest"` (of the batch) or `"max_length"`, for datasets that are
            batched later.
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
    parts = staticmethod(as_segments)
    not_in_config: tuple[str, ...] = ("tokenizer",)

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = 512,
        padding: str = "longest",
        pad_to_multiple_of: int = 8,
        **kwargs: Any,
    ):
        check_arguments(type(self), kwargs)
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self.sequence_length = check_integer("sequence_length", sequence_length, 5)
        self.padding = padding
        self.pad_to_multiple_of = check_integer(
            "pad_to_multiple_of", pad_to_multiple_of
        )
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
        return keras.utils.pack_x_y_sample_weight(self.features(x), y, sample_weight)

    def features(self, x: Texts | dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return the inputs of the model."""
        if isinstance(x, dict):
            return x
        return in_batch(lambda x: self.packer.pad(*self.pack(x)), self.parts(x))

    def pack(self, x: Texts) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Tokenize a batch and return the results of `SegmentPacker.pack`."""
        return self.packer.pack([self.tokenize(segment) for segment in as_segments(x)])

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of texts [batch], without special tokens."""
        return self.tokenizer(texts)

    def pack_texts(self, x: Texts) -> PackedTexts:
        """Tokenize and pack lists of texts.

        Warn if texts are truncated, or many tokens unknown.
        """
        packed = self.pack_rows(x)
        warn_of_unknown(packed.tokens.flat_values, x, self.tokenizer)
        return packed

    def pack_rows(self, x: Texts) -> PackedTexts:
        """Tokenize and pack lists of texts in threads, and warn of truncation."""
        segments = as_segments(x)
        pack = self._pack_function(len(segments))
        tokens, first_lengths, is_long = in_threads(pack, *segments)
        warn_of_truncation(is_long, self.packer.limit)
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
            segments = [self.tokenize(text) for text in texts]
            is_long = packer.full_lengths(segments) > packer.sequence_length
            tokens, first_lengths = packer.pack(segments)
            return tokens, first_lengths, is_long

        if not tf.config.functions_run_eagerly():
            # TensorFlow would take the functions of several preprocessors for one that
            # is traced again and again, and warn.
            pack = pack.get_concrete_function()
        self._traced_pack, self._traced_pack_key = pack, key
        return pack

    def with_tokenizer(self, tokenizer: keras_hub.tokenizers.Tokenizer) -> Self:
        """Return a preprocessor with the same settings and another tokenizer."""
        return type(self).from_config({**self.get_config(), "tokenizer": tokenizer})

    def save_to_preset(self, preset_dir: str | os.PathLike) -> None:
        """Write the preprocessor into a preset, completely or not at all."""
        with complete_directory(preset_dir) as folder:
            super().save_to_preset(str(folder))

    def get_config(self):
        base = AlbertTextClassifierPreprocessor
        return {**super().get_config(), **arguments_of(self, base, *self.not_in_config)}


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTokenClassifierPreprocessor(AlbertTextClassifierPreprocessor):
    """Tokenize and pack texts for `AlbertTokenClassifier`.

    A call returns one example per text, truncated to `sequence_length`. `pack_texts`
    returns long texts in overlapping windows.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        sequence_length: int. Maximum number of tokens per window, special tokens
            included.
        stride: optional int. Tokens from the start of one window of a long text to
            that of the next. By default three quarters of a window.
        padding: `"longest"` (of the batch) or `"max_length"`, for datasets that are
            batched later.
        pad_to_multiple_of: int. See `SegmentPacker`.

    Call arguments:
        x: a string, or a list or tensor of strings [batch]. A dict with the keys
            `token_ids`, `segment_ids`, `padding_mask` passes unchanged.
        y: optional labels, passed on.
        sample_weight: optional weights, passed on.

    Returns:
        A dict of int32 tensors [batch, time], or [time] for a single string; with `y`
        or `sample_weight` a tuple of all.

    Raises:
        AlbertError: if `stride` would leave out tokens, or `x` is a pair of texts.
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = 512,
        stride: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length=sequence_length, **kwargs)
        # A longer stride would leave out tokens between windows.
        most = self.sequence_length - 2
        if stride is not None:
            stride = check_integer("stride", stride, 1, most)
        self.stride = stride

    def features(self, x):
        refuse_pairs(x)
        return super().features(x)

    def pack_rows(self, x: Texts) -> WindowedTexts:
        """Tokenize strings [batch] and cut them into windows; also works in a graph."""
        refuse_pairs(x)
        ids, starts, ends = tokenize_with_offsets(self.tokenizer, x)
        size = self.sequence_length - 2
        stride = self.stride or max(size * 3 // 4, 1)
        starts, ends = without_overlap(starts, ends)
        return WindowedTexts.of(self.packer, ids, starts, ends, size, stride)


def in_batch(function: Callable[[Any], Any], x: tuple[Any, ...]) -> Any:
    """Call a function of batches, also for the parts of a single example."""
    if x[0].shape.rank:
        return function(x)
    outputs = function(tuple(tf.expand_dims(part, 0) for part in x))
    return tf.nest.map_structure(lambda value: value[0], outputs)


def without_overlap(
    starts: tf.RaggedTensor, ends: tf.RaggedTensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Return offsets [texts, (tokens)] in which no tokens share a character.

    If a character became several tokens, such as a Korean syllable, all but the first
    are empty (`start == end`).
    """
    before = tf.concat([tf.zeros_like(ends[:, :1]), ends[:, :-1]], axis=1).values
    starts = starts.with_values(tf.maximum(starts.values, before))
    return starts, ends.with_values(tf.maximum(starts.values, ends.values))


def refuse_pairs(x: Parts) -> None:
    """Raise if `x` is a pair of texts."""
    if isinstance(x, tuple) and len(x) > 1:
        raise AlbertError(
            "A token classifier takes one text per example, as a list of strings. "
            "Received a tuple of two lists, which is a pair of texts."
        )


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertQuestionAnsweringPreprocessor(AlbertTextClassifierPreprocessor):
    """Tokenize and pack questions and contexts for `AlbertQuestionAnswering`.

    A call returns one example per question, with the first window of its context.
    `pack_texts` returns all windows, which overlap.

    Args:
        tokenizer: a `WordPieceTokenizer` or `SentencePieceTokenizer`.
        sequence_length: int. Maximum number of tokens per window, with the question
            and the special tokens.
        stride: optional int. Tokens from the start of one window of a long context to
            that of the next. By default windows share 128 tokens, at most half.
        max_question_length: int. Maximum number of tokens of a question, at most half
            of the window. Longer questions are truncated.
        **kwargs: `padding` (`"longest"` or `"max_length"`) and `pad_to_multiple_of` of
            `AlbertTextClassifierPreprocessor`.

    Call arguments:
        x: the tuple of two lists or tensors of strings [batch], questions and
            contexts. A dict of ids passes unchanged.

    Returns:
        A dict of int32 tensors [batch, time].

    Raises:
        AlbertError: if `stride` is below 1, or `x` is not a tuple of two.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), and google-research/
        albert `squad_utils.py`, `convert_examples_to_features`.
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = 512,
        stride: int | None = None,
        max_question_length: int = 64,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length=sequence_length, **kwargs)
        if stride is not None:
            stride = check_integer("stride", stride)
        self.stride = stride
        self.max_question_length = check_integer(
            "max_question_length", max_question_length
        )

    def pack_texts(self, x: Texts) -> WindowedTexts:
        """Tokenize and pack lists of questions and contexts.

        Warn if questions are truncated, or many tokens unknown.
        """
        packed, lengths = self._windows(x)
        limit, reason = self.question_limit
        warn_of_truncation(lengths > limit, reason, "question")
        warn_of_unknown(packed.tokens.flat_values, x, self.tokenizer)
        return packed

    def pack_rows(self, x: Texts) -> WindowedTexts:
        """Tokenize questions and contexts, and cut the contexts into windows.

        It also works in a graph, and does not warn.
        """
        packed, _ = self._windows(x)
        return packed

    @property
    def question_limit(self) -> tuple[int, str]:
        """The maximum number of tokens of a question, and its name for messages."""
        return question_limit(self.sequence_length, self.max_question_length)

    def _windows(self, x):
        """Return the windows, and the number of tokens of each whole question."""
        check_parts(x, "questions", "contexts")
        questions, contexts = as_segments(x)
        ids, starts, ends = tokenize_with_offsets(self.tokenizer, contexts)
        questions = self.tokenizer(questions)
        whole_lengths = questions.row_lengths()
        questions = questions[:, : self.question_limit[0]]
        size = self.sequence_length - QUESTION_SPECIAL - questions.row_lengths()
        stride = size - tf.minimum(size // 2, SHARED)
        if self.stride is not None:
            stride = tf.minimum(size, self.stride)
        packed = WindowedTexts.of(
            self.packer, ids, starts, ends, size, stride, first=questions
        )
        return packed, whole_lengths

    def pack(self, x):
        contexts = self.pack_rows(x)
        is_first = contexts.windows.starts == 0
        return (
            tf.ragged.boolean_mask(contexts.tokens, is_first),
            tf.boolean_mask(contexts.first_lengths, is_first),
        )


def as_questions(x: Parts) -> tuple[list[str], list[str]]:
    """Return questions and contexts of any kind as two lists of Python strings."""
    check_parts(x, "questions", "contexts")
    questions, contexts = x
    return as_texts(questions), as_texts(contexts)
