"""Tokenizers as TensorFlow operations."""

import os
from collections.abc import Sequence
from typing import Any

from albert_tf.tokenizers.sentence_piece_tokenizer import SentencePieceTokenizer
from albert_tf.tokenizers.word_piece_tokenizer import WordPieceTokenizer

__all__ = ["SentencePieceTokenizer", "WordPieceTokenizer", "load_tokenizer"]


def load_tokenizer(
    vocabulary: str | os.PathLike | bytes | Sequence[str],
    lowercase: bool = True,
    **settings: Any,
) -> WordPieceTokenizer | SentencePieceTokenizer:
    """Load the tokenizer of a vocabulary.

    Args:
        vocabulary: path of a `vocab.txt` or list of tokens for a `WordPieceTokenizer`;
            path of a SentencePiece model (`.model` or `.spm`) or its content as bytes
            for a `SentencePieceTokenizer`.
        lowercase: bool. Lower-case text.
        **settings: further arguments of the class; those of a `WordPieceTokenizer`
            are ignored for a SentencePiece model.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is damaged or lacks a required token.

    Example:

    >>> load_tokenizer("examples/albert_micro_zh/vocab.txt")(["你好"])
    <tf.RaggedTensor [[152, 138]]>
    """
    if isinstance(vocabulary, os.PathLike):
        vocabulary = os.fspath(vocabulary)
    if isinstance(vocabulary, bytes) or (
        isinstance(vocabulary, str) and vocabulary.endswith((".model", ".spm"))
    ):
        others = {*WordPieceTokenizer.settings} - {*SentencePieceTokenizer.settings}
        settings = {name: x for name, x in settings.items() if name not in others}
        return SentencePieceTokenizer(vocabulary, lowercase, **settings)
    return WordPieceTokenizer(vocabulary, lowercase, **settings)
