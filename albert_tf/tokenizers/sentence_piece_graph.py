"""SentencePiece as operations of TensorFlow and TensorFlow Text."""

import functools
import itertools
import unicodedata

import numpy as np
import sentencepiece
import tensorflow as tf

from albert_tf.quiet_import import import_tensorflow_text
from albert_tf.tokenizers.alignment import Alignment
from albert_tf.tokenizers.text_tokenizer import map_rows
from albert_tf_lite.sentence_piece import SPACE_PIECE, comma_parts

tf_text = import_tensorflow_text()

# White space of Python's `str.split`, which differs from RE2's `\s`.
ODD_SPACE = (
    r"\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}"
)
WHITE_SPACE = f" {ODD_SPACE}"
# Leaves out single spaces, which `[{WHITE_SPACE}]+` finds, too, at a third of the
# speed.
TOO_MUCH_SPACE = f"[{WHITE_SPACE}]*[{ODD_SPACE}][{WHITE_SPACE}]*|  +"

# Most English text, typographic dashes and quotes included, contains no other
# characters. It needs ASCII lower-casing only and, if it has several lines, joining.
PLAIN_CHARACTERS = r"!-~\x{2013}\x{2014}\x{2018}-\x{201e}"
PLAIN_TEXT = rf"[ \t-\r\x1c-\x1f{PLAIN_CHARACTERS}]*"
PLAIN_LINE = f"(?:[{PLAIN_CHARACTERS}]+ )*[{PLAIN_CHARACTERS}]+"

# No character beyond the first two planes of Unicode has a combining class.
MARK_PLANES = range(0x20000)

# A noncharacter, which is not meant for text.
NUL_MARK = "\ufdd0"


class SentencePieceGraph:
    """Engine of a SentencePiece model in the graph."""

    def __init__(self, proto: bytes, lowercase: bool):
        self._proto, self._lowercase = proto, lowercase
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        tokens = [processor.id_to_piece(i) for i in range(len(processor))]
        rows = [comma_parts(processor, token) for token in tokens]
        parts, texts_after = zip(*itertools.chain(*rows), strict=True)
        # The parts of all pieces, [tokens, (parts)].
        self._part_splits = np.cumsum([0, *map(len, rows)], dtype="int32")
        self._part_ids = [processor.piece_to_id(part) for part in parts]
        self._bytes_after = [len(text.encode()) for text in texts_after]
        # Unlike the id of a token, -1 is never found.
        self._space_id = {x: i for i, x in enumerate(tokens)}.get(SPACE_PIECE, -1)
        self._encode = self._graph_function("tokenize")
        self._encode_with_offsets = self._graph_function("tokenize_with_offsets")

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of strings [batch], ragged."""
        return self._split_commas(self._encode(clean_up(text, self._lowercase)))

    def encode_with_offsets(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Return ids, starts and ends of strings [batch], all ragged."""
        alignment = TextAlignment(text, self._lowercase, self)
        cleaned = clean_up(text, self._lowercase)
        ids, starts, ends = self._encode_with_offsets(cleaned)
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
        starts, ends = ids.with_values(starts), ids.with_values(ends)
        return ids, *alignment.spans(alignment.text_sizes, starts, ends)

    def is_blank(self, text: tf.Tensor) -> tf.Tensor:
        """Return which cleaned strings [strings] have no pieces but spaces."""
        return tf.reduce_all(self._encode(text) == self._space_id, axis=1)

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
            return getattr(tf_text.SentencepieceTokenizer(self._proto), method)(text)

        return encode


# === Clean-up ===


@functools.cache
def combining_marks() -> str:
    """Return an RE2 class of the characters that clean-up drops.

    RE2 has general categories such as Mn, but not the canonical combining class. As in
    the original, the class comes from the Unicode data of the running Python.
    """
    marks = {code for code in MARK_PLANES if unicodedata.combining(chr(code))}
    starts = sorted(code for code in marks if code - 1 not in marks)
    ends = sorted(code for code in marks if code + 1 not in marks)
    ranges = ""
    for start, end in zip(starts, ends, strict=True):
        ranges += f"\\x{{{start:x}}}-\\x{{{end:x}}}"
    return f"[{ranges}]"


def clean_up(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    """Clean strings [batch] like google-research/albert's `preprocess_text`."""
    is_plain = tf.strings.regex_full_match(text, PLAIN_TEXT)
    is_line = tf.strings.regex_full_match(text, PLAIN_LINE)
    text = map_rows(join_words, text, is_plain & ~is_line)
    text = map_rows(lambda rows: clean_any(rows, lowercase), text, ~is_plain)
    return tf.strings.lower(text) if lowercase else text


def clean_any(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")
    return decompose(join_words(text), lowercase)


def join_words(text: tf.Tensor) -> tf.Tensor:
    text = tf.strings.regex_replace(text, TOO_MUCH_SPACE, " ")
    # `strip` removes ASCII white space, of which only spaces are left.
    return tf.strings.strip(text)


def decompose(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    text = tf_text.normalize_utf8(text, "NFKD")
    text = tf.strings.regex_replace(text, f"{combining_marks()}+", "")
    if not lowercase:
        return text
    # Lower-casing beyond ASCII truncates the string at NUL. ASCII goes first, because
    # the other form depends on the locale of the process, as for WordPiece.
    text = tf.strings.regex_replace(tf.strings.lower(text), r"\x00", NUL_MARK)
    text = tf.strings.lower(text, encoding="utf-8")
    return tf.strings.regex_replace(text, NUL_MARK, "\0")


class TextAlignment(Alignment):
    """Alignment that counts the bytes of text, which pieces contain.

    White space, and characters that the model's own normalization removes, are blank:
    spans do not begin or end with blanks, and a span has the bytes of its piece.
    """

    def __init__(self, text: tf.Tensor, lowercase: bool, model: SentencePieceGraph):
        super().__init__(text, lambda unique: decompose(unique, lowercase))
        is_space = tf.strings.regex_full_match(self.unique, f"[{WHITE_SPACE}]")
        blank = tf.gather(is_space | model.is_blank(self.cleaned), self.index)
        is_space = tf.gather(is_space, self.index)
        # White space at the start of a row or after other white space is joined.
        after_space = tf.tensor_scatter_nd_update(
            tf.concat([[True], is_space], axis=0),
            self.row_starts[:, tf.newaxis],
            tf.fill(tf.shape(self.row_starts), True),
        )[:-1]
        sizes = tf.where(is_space, tf.where(after_space, 0, 1), self.sizes)
        self.text_sizes = tf.where(blank, 0, sizes)
        # [characters + 1] bytes of the cleaned batch before each character. Rows that
        # end in white space have one byte too many, which is in no piece.
        self.bytes_before = tf.concat([[0], tf.cumsum(sizes)], axis=0)
        # [bytes + 1] bytes of text before each byte of the cleaned batch.
        is_text = tf.repeat(tf.cast(~blank, tf.int32), sizes)
        self.text_before = tf.concat([[0], tf.cumsum(is_text)], axis=0)

    def text_positions(self, offsets: tf.RaggedTensor) -> tf.RaggedTensor:
        """Convert byte offsets in cleaned rows to positions in text of the batch."""
        row_starts = tf.gather(self.bytes_before, self.row_starts)
        row_start = tf.gather(row_starts, offsets.value_rowids())
        positions = row_start + tf.cast(offsets.values, tf.int32)
        return offsets.with_values(tf.gather(self.text_before, positions))
