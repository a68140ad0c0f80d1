"""A SentencePiece model: reading it, its tokens, and the engine that finds them."""

import itertools
import os

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf_lite.errors import AlbertError

REQUIRED_TOKENS = ("<pad>", "<unk>", "[CLS]", "[SEP]")
# Stands for a space, at the start of a word.
SPACE_PIECE = "\u2581"

# What each piece of a serialized model begins with; then comes its length.
FIRST_FIELD = 0x0A


class SentencePieceModel:
    """Tokens by id, ids by token, and the engine, which gives ids or pieces."""

    def __init__(self, proto, as_pieces=False):
        self.proto, source = read_proto(proto)
        processor = open_processor(self.proto, source)
        self.as_pieces = as_pieces
        self.tokens = [processor.id_to_piece(i) for i in range(len(processor))]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        check_tokens(self.tokens, source)
        self._commas = CommaSplits(processor, self.tokens, as_pieces)
        self._encode = self._graph_function(with_offsets=False)
        self._encode_with_offsets = self._graph_function(with_offsets=True)

    def encode(self, text):
        """The ids (or pieces) of cleaned strings [batch], ragged."""
        tokens, ids = self._encode(text)
        return self._commas.split(tokens, ids)

    def encode_with_offsets(self, text, alignment):
        """Ids (or pieces), starts and ends of cleaned strings, all ragged.

        The `Alignment` of the original text makes them spans of its characters.
        """
        tokens, ids, starts, ends = self._encode_with_offsets(text)
        starts = alignment.text_positions(starts)
        ends = alignment.text_positions(ends)
        starts, ends = self._commas.split_spans(starts, ends, ids)
        return self._commas.split(tokens, ids), *alignment.spans(starts, ends)

    def is_blank(self, text):
        """Which of the strings [strings] leave nothing but space in pieces."""
        _, ids = self._encode(text)
        return tf.reduce_all(ids == self.ids.get(SPACE_PIECE, -1), axis=1)

    def _graph_function(self, with_offsets):
        """The engine as a function of strings [batch].

        It makes the engine inside its graph, as an operation that holds the
        model. An engine made outside would be a resource that SavedModels take
        only where the user's module keeps track of it.
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
    """What becomes of pieces that end in a digit and a comma.

    The original takes them apart, so that a number is the same piece whether a
    comma follows it or not: it encodes the digits again and adds the comma. What a
    piece becomes depends on nothing else, so it is a table.

    The original also means to drop the space piece that the second encoding adds to
    digits from inside a word. But there it compares a character with bytes, which
    never are equal, and keeps it. In the released model all such pieces are the
    start of a word.
    """

    def __init__(self, processor, tokens, as_pieces):
        self._as_pieces = as_pieces
        rows = [comma_parts(processor, token) for token in tokens]
        parts = list(itertools.chain.from_iterable(rows))
        self._row_splits = np.cumsum([0, *map(len, rows)], dtype="int32")
        self._parts = parts if as_pieces else [processor.piece_to_id(p) for p in parts]
        self._bytes_after = list(itertools.chain.from_iterable(map(bytes_after, rows)))

    def split(self, tokens, ids):
        """The tokens (ids or pieces) [batch, (tokens)], with those taken apart."""
        parts = self._look_up(self._parts, ids)
        values = parts.values
        if self._as_pieces:
            # An unknown piece is the text that it stands for.
            lengths = parts.row_lengths()
            is_whole = tf.repeat(lengths == 1, lengths)
            values = tf.where(is_whole, tf.repeat(tokens.values, lengths), values)
        return _regroup(tokens, parts, values)

    def split_spans(self, starts, ends, ids):
        """The spans of what `split` gives, in bytes of text."""
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
    """The values of the parts of tokens [tokens, (parts)] as [batch, (parts)]."""
    # int64, as TensorFlow's own ragged tensors have them, that all can be combined.
    row_splits = tf.cast(tf.gather(parts.row_splits, tokens.row_splits), tf.int64)
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)


def comma_parts(processor, token):
    """The pieces of `<digits>,`, or the token itself."""
    if len(token) < 2 or token[-1] != "," or not token[-2].isdigit():
        return [token]
    number = token[:-1].replace(SPACE_PIECE, "")
    return [*processor.encode(number, out_type=str), ","]


def bytes_after(parts):
    """How many bytes of text follow each part in the piece."""
    sizes = [len(part.replace(SPACE_PIECE, "").encode()) for part in parts]
    return [sum(sizes[i + 1 :]) for i in range(len(sizes))]


def read_proto(proto):
    """The bytes of a model, and what to call it in messages."""
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
            f"{source} does not exist or is no file. Expected the path of a .model "
            "or .spm file, such as the 30k-clean.model of a release."
        )
    with open(proto, "rb") as file:
        return file.read(), source


def open_processor(proto, source):
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
            f"{source}, {len(proto)} bytes, is cut short: it does not say how to "
            "normalize text. Copy the .model file of the release again."
        )
    return processor


def is_cut_after_a_piece(proto):
    """Whether there is nothing after the pieces, each under 128 bytes.

    SentencePiece takes this for a model, of another vocabulary.
    """
    end = 0
    while end + 1 < len(proto) and proto[end] == FIRST_FIELD:
        end += 2 + proto[end + 1]
    return end == len(proto)


def check_tokens(tokens, source):
    missing = [token for token in REQUIRED_TOKENS if token not in tokens]
    if missing:
        raise AlbertError(
            f"{source} lacks {' '.join(missing)}; its {len(tokens)} tokens begin "
            f"with {tokens[:5]}. Use the .model file that came with the checkpoint, or "
            "train one with pad_id=0, unk_id=1, control_symbols='[CLS],[SEP],[MASK]'."
        )
