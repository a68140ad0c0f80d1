"""Tokenizers as TensorFlow operations."""

from albert_tf.tokenizers.load_tokenizer import load_tokenizer
from albert_tf.tokenizers.sentence_piece_tokenizer import SentencePieceTokenizer
from albert_tf.tokenizers.word_piece_tokenizer import WordPieceTokenizer

__all__ = ["SentencePieceTokenizer", "WordPieceTokenizer", "load_tokenizer"]
