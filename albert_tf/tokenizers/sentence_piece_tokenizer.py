import itertools
import os
from typing import Any

import keras
import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.tokenizers.sentence_piece_clean_up import Alignment, clean_up
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.sentence_piece import SPACE_PIECE, comma_parts

REQUIRED_TOKENS = ("<pad>", "<unk>", "[CLS]", "[SEP]")
# The first byte of each piece in a serialized model. The next byte is its length.
FIRST_FIELD = 0x0A


@keras.saving.register_keras_serializable(package="albert_tf")
class SentencePieceTokenizer(TextTokenizer):
    """Google's tokenizer of the English ALBERT models as TensorFlow ops.

    The ids are those of the original Python (`preprocess_text` and `encode_ids` of
    google-research/albert): white space is collapsed, text decomposed (NFKD), accents
    dropped, letters lower-cased, and after SentencePiece a number is separated from the
    comma that follows it. Tokenizers without this clean-up return ids that the models
    were not trained on, for English text, too.

    Text is UTF-8; invalid bytes are skipped. Names of special tokens in the text are
    ordinary text.

    A piece that begins with `▁` is the start of a word. Its offsets are those of the
    word, without the space. `▁` alone has an empty span at the next text.

    Args:
        proto: path of a SentencePiece model, such as `30k-clean.model`, or its content
            as bytes. It must contain `<pad>`, `<unk>`, `[CLS]` and `[SEP]`; `[MASK]` is
            optional. `None` if a preset or `set_proto()` sets it later.
        lowercase: bool. Lower-case text. Accents are dropped in any case, as in
            the original.
        dtype: `"int32"` or `"int64"` for ids, `"string"` for pieces.

    Call arguments:
        inputs: strings of any shape.

    Returns:
        A tensor `[tokens]` for a string, a `tf.RaggedTensor` `[batch, (tokens)]` for a
        batch `[batch]`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is damaged or lacks a required token.

    Example:

    >>> tokenizer = SentencePieceTokenizer("30k-clean.model")
    >>> tokenizer(["A café in 2018, maybe"])
    <tf.RaggedTensor [[21, 6241, 19, 1110, 15, 913]]>
    >>> tokenizer.detokenize([21, 6241, 19, 1110, 15, 913]).numpy().decode()
    'a cafe in 2018, maybe'

    Reference:
        - [Lan et al., 2019](https://arxiv.org/abs/1909.11942)
        - [Kudo and Richardson, 2018](https://arxiv.org/abs/1808.06226)
    """

    pad_token = "<pad>"
    unk_token = "<unk>"

    asset_file_name = "vocabulary.spm"
    original_file_name = "spiece.model"
    source_argument = "proto"

    def __init__(
        self,
        proto: str | os.PathLike | bytes | None = None,
        lowercase: bool = True,
        dtype: str = "int32",
        **kwargs: Any,
    ):
        super().__init__(lowercase=lowercase, dtype=dtype, **kwargs)
        self.set_proto(proto)

    def set_proto(self, proto: str | os.PathLike | bytes | None) -> None:
        """Set the model from a file path or its content as bytes."""
        self._set_source(proto)

    @property
    def proto(self) -> bytes | None:
        """Return the serialized model as bytes, or `None`."""
        return self._vocabulary.proto if self._vocabulary else None

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        # Models with equal tokens may have different scores.
        return *super().fingerprint, self.proto

    def _read(self, source):
        return SentencePieceModel(source)

    def _write(self, path):
        proto = self._required_vocabulary().proto
        with open(path, "wb") as file:
            file.write(proto)

    def _tokenize_batch(self, text):
        return self._vocabulary.encode(clean_up(text, self.lowercase))

    def _tokenize_batch_with_offsets(self, text):
        alignment = Alignment(text, self.lowercase, self._vocabulary.is_blank)
        cleaned = clean_up(text, self.lowercase)
        return self._vocabulary.encode_with_offsets(cleaned, alignment)

    def _join(self, pieces):
        text = tf.strings.reduce_join(pieces, axis=-1)
        return tf.strings.strip(tf.strings.regex_replace(text, SPACE_PIECE, " "))


class SentencePieceModel:
    """Tokens by id, ids by token, and the engine of a SentencePiece model."""

    def __init__(self, proto: str | os.PathLike | bytes):
        self.proto, source = read_proto(proto)
        processor = open_processor(self.proto, source)
        self.tokens = [processor.id_to_piece(i) for i in range(len(processor))]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        check_tokens(self.tokens, source)
        rows = [comma_parts(processor, token) for token in self.tokens]
        parts, texts_after = zip(*itertools.chain(*rows), strict=True)
        # The parts of all pieces, [tokens, (parts)].
        self._part_splits = np.cumsum([0, *map(len, rows)], dtype="int32")
        self._part_ids = [processor.piece_to_id(part) for part in parts]
        self._bytes_after = [len(text.encode()) for text in texts_after]
        self._encode = self._graph_function("tokenize")
        self._encode_with_offsets = self._graph_function("tokenize_with_offsets")

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of cleaned strings [batch], ragged."""
        return self._split_commas(self._encode(text))

    def encode_with_offsets(
        self, text: tf.Tensor, alignment: Alignment
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Return ids, starts and ends of cleaned strings [batch], all ragged.

        Starts and ends are characters of the original text by its `Alignment`.
        """
        ids, starts, ends = self._encode_with_offsets(text)
        after = self._parts_of(self._bytes_after, ids)
        ends = alignment.text_positions(ends).values
        ends = tf.repeat(ends, after.row_lengths()) - after.values
        # Each part begins where the one before ends.
        starts = tf.tensor_scatter_nd_update(
            tf.concat([[0], ends], axis=0)[:-1],
            after.row_starts()[:, tf.newaxis],
            alignment.text_positions(starts).values,
        )
        ids = self._split_commas(ids)
        return ids, *alignment.spans(ids.with_values(starts), ids.with_values(ends))

    def is_blank(self, text: tf.Tensor) -> tf.Tensor:
        """Return which strings [strings] have no pieces but spaces."""
        return tf.reduce_all(
            self._encode(text) == self.ids.get(SPACE_PIECE, -1), axis=1
        )

    def _split_commas(self, ids):
        """Replace pieces by their `comma_parts`."""
        parts = self._parts_of(self._part_ids, ids)
        # int64, as in TensorFlow's own ragged tensors, which combine with these.
        row_splits = tf.cast(tf.gather(parts.row_splits, ids.row_splits), tf.int64)
        return tf.RaggedTensor.from_row_splits(parts.values, row_splits, validate=False)

    def _parts_of(self, values, ids):
        table = tf.RaggedTensor.from_row_splits(
            tf.constant(values), self._part_splits, validate=False
        )
        return tf.gather(table, ids.values)

    def _graph_function(self, method):
        """Return a method of the engine as a function of strings [batch].

        The engine is created in the graph of the function, as an operation that holds
        the model. Created outside, it would be a resource that a user's module must
        track for SavedModels.
        """

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def encode(text):
            return getattr(tf_text.SentencepieceTokenizer(self.proto), method)(text)

        return encode


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
    """Return whether nothing follows the pieces, each of less than 128 bytes.

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
