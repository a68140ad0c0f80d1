from typing import Any

import keras
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor,
)
from albert_tf.preprocessing.texts import (
    as_python_strings,
    as_segments,
    check_parts,
    tokenize_with_offsets,
)
from albert_tf_lite.errors import AlbertError

# Tokens that neighbouring windows share by default: a whole answer should be in one.
SHARED = 128


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
        **kwargs: as for `AlbertTextClassifierPreprocessor`.

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

    def pack_texts(self, x: Any) -> WindowedTexts:
        """Tokenize questions and contexts, and cut the contexts into windows."""
        check_parts(x, "questions", "contexts")
        questions, contexts = as_segments(x)
        tokens = tokenize_with_offsets(self.tokenizer, contexts)
        # [CLS] and two [SEP].
        room = self.sequence_length - 3
        questions = self.tokenizer(questions)
        questions = questions[:, : min(self.max_question_length, room // 2)]
        size = room - questions.row_lengths()
        stride = size - tf.minimum(size // 2, SHARED)
        if self.stride is not None:
            stride = tf.minimum(size, self.stride)
        return WindowedTexts.of(self.packer, *tokens, size, stride, questions)

    def pack(self, x):
        contexts = self.pack_texts(as_segments(x))
        is_first = contexts.windows.starts == 0
        return (
            tf.ragged.boolean_mask(contexts.tokens, is_first),
            tf.boolean_mask(contexts.first_lengths, is_first),
        )


def as_questions(x: Any) -> tuple[list[str], list[str]]:
    """Return questions and contexts of any kind as two lists of Python strings."""
    check_parts(x, "questions", "contexts")
    questions, contexts = map(as_python_strings, x)
    return questions, contexts
