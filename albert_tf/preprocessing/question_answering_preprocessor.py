from __future__ import annotations

import dataclasses
from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.offsets import tokenize_with_offsets
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import as_python_strings, as_segments
from albert_tf.preprocessing.windows import Windows
from albert_tf_lite.errors import AlbertError

# Tokens that neighbouring windows share by default: a whole answer should be in one.
SHARED = 128


@dataclasses.dataclass(frozen=True)
class WindowedContexts:
    """Questions, each with a window of its context: what a model reads.

    Attributes:
        starts, ends: ragged int32 tensors [examples, (tokens)], the characters of
            each token of the contexts.
        windows: `Windows` of the contexts' tokens.
        tokens: ragged int32 tensor [windows, (tokens)], `[CLS] question [SEP] window
            [SEP]`.
        first_lengths: int64 tensor [windows], the tokens before the window.
    """

    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    windows: Windows
    tokens: tf.RaggedTensor
    first_lengths: tf.Tensor

    def __len__(self) -> int:
        return len(self.windows)

    def characters(
        self, window: tf.Tensor, first: tf.Tensor, last: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Where spans of tokens begin and end in the contexts, in characters.

        Args:
            window: int64 tensor [spans], the window that each is in.
            first, last: int64 tensors [spans], its first and its last token there.

        Returns:
            Two int32 tensors [spans]; numbers without meaning for what is no token of a
            context.
        """
        windows = self.windows
        shift = windows.row_starts + windows.starts - self.first_lengths
        shift = tf.gather(shift, window)
        # One more at the end, for contexts without any token.
        most = tf.size(self.starts.values, tf.int64)
        return tuple(
            tf.gather(tf.pad(values, [[0, 1]]), tf.clip_by_value(shift + at, 0, most))
            for values, at in ((self.starts.values, first), (self.ends.values, last))
        )


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertQuestionAnsweringPreprocessor(AlbertTextClassifierPreprocessor):
    """Questions and contexts in, what `AlbertQuestionAnswering` takes out.

    A context too long for one example is cut into windows that overlap; see
    `windows`. Called as a layer it gives one example a question, with the first
    window.

    Args:
        tokenizer: a `WordPieceTokenizer` or a `SentencePieceTokenizer`.
        sequence_length: int. Most tokens of a window, the question and the special
            ones included.
        stride: optional int. Tokens from the start of one window of a long context to
            that of the next. By default windows share 128 tokens, at most half.
        max_question_length: int. Questions of more tokens are cut, and those that
            would leave less than half of the tokens to the context.
        **kwargs: as for `AlbertTextClassifierPreprocessor`.

    Call arguments:
        x: the tuple of two lists or tensors of strings [batch], questions and
            contexts; or a dict of ids, which passes unchanged.

    Returns:
        A dict of int32 tensors [batch, time].

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), and google-research/
        albert `squad_utils.py`, `convert_examples_to_features`.
    """

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 512,
        stride: int | None = None,
        max_question_length: int = 64,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length=sequence_length, **kwargs)
        if stride is not None and stride < 1:
            raise AlbertError(f"`stride` must be at least 1. Received: {stride}")
        self.stride = stride
        self.max_question_length = max_question_length

    def windows(self, x: Any) -> WindowedContexts:
        """Tokenize questions and contexts, and cut the contexts.

        Args:
            x: the tuple of two lists of strings, or string tensors [examples].

        Raises:
            TypeError: if these are no strings.
            AlbertError: if it is no such tuple, or they are not as many.
        """
        _check_is_pair(x)
        questions, contexts = as_segments(x)
        # In a graph, where strings have no halves of surrogate pairs.
        if tf.is_tensor(x[1]):
            tokens, starts, ends = self.tokenizer.tokenize_with_offsets(contexts)
        else:
            tokens, starts, ends = tokenize_with_offsets(self.tokenizer, x[1])
        starts, ends = (tf.cast(part, tf.int32) for part in (starts, ends))
        # [CLS] and two [SEP].
        room = self.sequence_length - 3
        questions = self.tokenizer(questions)
        questions = questions[:, : min(self.max_question_length, room // 2)]
        size = room - questions.row_lengths()
        stride = size - tf.minimum(size // 2, SHARED)
        if self.stride is not None:
            stride = tf.minimum(size, self.stride)
        windows = Windows.of(tokens, size, stride)
        parts = tf.gather(questions, windows.texts), windows.of_windows(tokens.values)
        return WindowedContexts(starts, ends, windows, *self.packer.pack(parts))

    def pack(self, x):
        """Tokenize a batch, of each context the first window; as `SegmentPacker`."""
        contexts = self.windows(tuple(map(tf.convert_to_tensor, as_segments(x))))
        is_first = contexts.windows.starts == 0
        return (
            tf.ragged.boolean_mask(contexts.tokens, is_first),
            tf.boolean_mask(contexts.first_lengths, is_first),
        )

    def get_config(self):
        return {
            **super().get_config(),
            "stride": self.stride,
            "max_question_length": self.max_question_length,
        }


def as_questions(x: Any) -> tuple[list[str], list[str]]:
    """Questions and contexts of any kind as two lists of Python strings."""
    _check_is_pair(x)
    return tuple(map(as_python_strings, x))


def _check_is_pair(x):
    if not isinstance(x, tuple) or len(x) != 2:
        count = f" of {len(x)}" if isinstance(x, tuple) else ""
        raise AlbertError(
            "`x` should be the tuple of two lists, (questions, contexts). Received: "
            f"{type(x).__name__}{count}"
        )
