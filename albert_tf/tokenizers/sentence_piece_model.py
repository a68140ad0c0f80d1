"""SentencePiece model: its file, its tokens and the engine that finds them."""

from __future__ import annotations

import itertools
import os

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.tokenizers.sentence_piece_clean_up import Alignment
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.sentence_piece import SPACE_PIECE, comma_parts

REQUIRED_TOKENS = ("<pad>", "<unk>", "[CLS]", "[SEP]")
# The first byte of each piece in a serialized model. The next byte is its length.
FIRST_FIELD = 0x0A


class SentencePieceModel:
    """Tokens by id, ids by token, and the engine, which returns ids or pieces."""

    def __init__(self, proto: str | os.PathLike | bytes, as_pieces: bool = False):
        self.proto, source = read_proto(proto)
        processor = open_processor(self.proto, source)
        self.as_pieces = as_pieces
        self.tokens = [processor.id_to_piece(i) for i in range(len(processor))]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        check_tokens(self.tokens, source)
        self._commas = CommaSplits(processor, self.tokens, as_pieces)
        self._encode = self._graph_function(with_offsets=False)
        self._encode_with_offsets = self._graph_function(with_offsets=True)

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids (or pieces) of cleaned strings [batch], ragged."""
        tokens, ids = self._encode(text)
        return self._commas.split(tokens, ids)

    def encode_with_offsets(
        self, text: tf.Tensor, alignment: Alignment
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Return ids (or pieces), starts and ends of cleaned strings, all ragged.

        Starts and ends are characters of the original text by its `Alignment`.
        """
        tokens, ids, starts, ends = self._encode_with_offsets(text)
        starts = alignment.text_positions(starts)
        ends = alignment.text_positions(ends)
        starts, ends = self._commas.split_spans(starts, ends, ids)
        return self._commas.split(tokens, ids), *alignment.spans(starts, ends)

    def is_blank(self, text: tf.Tensor) -> tf.Tensor:
        """Return which strings [strings] have no pieces but spaces."""
        _, ids = self._encode(text)
        return tf.reduce_all(ids == self.ids.get(SPACE_PIECE, -1), axis=1)

    def _graph_function(self, with_offsets):
        """Return the engine as a function of strings [batch].

        The engine is created in the graph of the function, as an operation that holds
        the model. Created outside, it would be a resource that a user's module must
        track for SavedModels.
        """
        out_type = tf.string if self.as_pieces else tf.int32

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def encode(text):
            engine = tf_text.SentencepieceTokenizer(self.proto, out_type=out_type)
            if with_offsets:
                tokens, *spans = engine.tokenize_with_offsets(text)
            else:
                tokens, spans = engine.tokenize(text), ()
            ids = engine.string_to_id(tokens) if self.as_pieces else tokens
            return tokens, ids, *spans

        return encode


class CommaSplits:
    """Table of the `comma_parts` of all pieces, for ragged tensors of ids."""

    def __init__(
        self,
        processor: sentencepiece.SentencePieceProcessor,
        tokens: list[str],
        as_pieces: bool,
    ):
        self._as_pieces = as_pieces
        rows = [comma_parts(processor, token) for token in tokens]
        parts, self._bytes_after = map(list, zip(*itertools.chain(*rows), strict=True))
        self._row_splits = np.cumsum([0, *map(len, rows)], dtype="int32")
        self._parts = parts if as_pieces else [processor.piece_to_id(p) for p in parts]

    def split(self, tokens: tf.RaggedTensor, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Return tokens (ids or pieces) [batch, (tokens)] with these pieces split."""
        parts = self._look_up(self._parts, ids)
        values = parts.values
        if self._as_pieces:
            # An unknown piece is its text.
            lengths = parts.row_lengths()
            is_whole = tf.repeat(lengths == 1, lengths)
            values = tf.where(is_whole, tf.repeat(tokens.values, lengths), values)
        return _regroup(tokens, parts, values)

    def split_spans(
        self, starts: tf.RaggedTensor, ends: tf.RaggedTensor, ids: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Return the spans of the tokens of `split`, in bytes of text."""
        after = self._look_up(self._bytes_after, ids)
        part_ends = tf.repeat(ends.values, after.row_lengths()) - after.values
        part_starts = tf.tensor_scatter_nd_update(
            tf.concat([[0], part_ends], axis=0)[:-1],
            after.row_starts()[:, tf.newaxis],
            starts.values,
        )
        return _regroup(starts, after, part_starts), _regroup(ends, after, part_ends)

    def _look_up(self, values, ids):
        table = tf.RaggedTensor.from_row_splits(
            tf.constant(values), self._row_splits, validate=False
        )
        return tf.gather(table, ids.values)


def _regroup(tokens, parts, values):
    """Regroup the values of parts [tokens, (parts)] to [batch, (parts)]."""
    # int64, as in TensorFlow's own ragged tensors, which combine with these.
    row_splits = tf.cast(tf.gather(parts.row_splits, tokens.row_splits), tf.int64)
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)


def read_proto(proto: str | os.PathLike | bytes) -> tuple[bytes, str]:
    """Return the bytes of a model and its name in messages."""
    if isinstance(proto, bytes):
        return proto, "The SentencePiece model given as bytes"
    if not isinstance(proto, (str, os.PathLike)):
        raise TypeError(
            "`proto` must be the path of a SentencePiece model or its content as "
            f"bytes. Received: {proto!r}"
        )
    source = f"SentencePiece model '{os.fspath(proto)}'"
    if not os.path.isfile(proto):
        raise FileNotFoundError(
            f"{source} does not exist or is not a file. Expected the path of a .model "
            "or .spm file, such as the 30k-clean.model of a release."
        )
    with open(proto, "rb") as file:
        return file.read(), source


def open_processor(proto: bytes, source: str) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(proto)
    except RuntimeError as error:
        raise AlbertError(
            f"{source} is text, empty or damaged. Expected a SentencePiece model, the "
            "binary .model file of a release; for a vocab.txt of WordPiece tokens use "
            f"WordPieceTokenizer. ({error})"
        ) from error
    if is_cut_after_a_piece(proto):
        raise AlbertError(
            f"{source}, {len(proto)} bytes, is cut short: it lacks the rules to "
            "normalize text. Copy the .model file of the release again."
        )
    return processor


def is_cut_after_a_piece(proto: bytes) -> bool:
    """Return whether nothing follows the pieces, which have less than 128 bytes each.

    SentencePiece loads such a file as a model of another vocabulary.
    """
    end = 0
    while end + 1 < len(proto) and proto[end] == FIRST_FIELD:
        end += 2 + proto[end + 1]
    return end == len(proto)


def check_tokens(tokens: list[str], source: str) -> None:
    missing = [token for token in REQUIRED_TOKENS if token not in tokens]
    if missing:
        raise AlbertError(
            f"{source} lacks {' '.join(missing)}; its {len(tokens)} tokens begin "
            f"with {tokens[:5]}. Use the .model file that came with the checkpoint, or "
            "train one with pad_id=0, unk_id=1, control_symbols='[CLS],[SEP],[MASK]'."
        )
