"""Google ALBERT's tokenizer of English, with the package `sentencepiece`."""

import functools
import itertools
import unicodedata
from collections.abc import Iterator
from typing import Any

from albert_tf_lite.errors import import_extra

# Represents a space, at the start of a word.
SPACE_PIECE = "\u2581"


class SentencePieceTokenizer:
    """Tokenizer with the ids of `albert_tf.tokenizers.SentencePieceTokenizer`.

    If two segmentations of a word are equally likely, releases of SentencePiece after
    0.2.1 choose another one than TensorFlow Text.

    Reference:
        google-research/albert `tokenization.py`, `preprocess_text` and `encode_ids`.
    """

    def __init__(self, proto: bytes, lowercase: bool = True):
        sentencepiece = import_extra("sentencepiece")
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(proto)
        self.lowercase = lowercase
        self.pad_token_id, self.cls_token_id, self.sep_token_id = map(
            self._processor.piece_to_id, ("<pad>", "[CLS]", "[SEP]")
        )
        self._space_id = self._processor.piece_to_id(SPACE_PIECE)
        self._parts = functools.cache(self._find_parts)
        self._is_blank = functools.cache(self._find_blank)

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        cleaned = self._decompose(" ".join(text.split()))
        ids = self._processor.encode(cleaned, out_type=int)
        return [number for piece in ids for number, _ in self._parts(piece)]

    def tokenize_with_offsets(
        self, text: str
    ) -> tuple[list[int], list[int], list[int]]:
        """Return the ids of a text and their starts and ends, in characters.

        Offsets exclude the space before a word. A piece that is only a space has an
        empty span at the next text.
        """
        alignment = _Alignment(text, self._decompose, self._is_blank)
        cleaned = self._decompose(" ".join(text.split()))
        ids, starts, ends = [], [], []
        # The only form with offsets in all releases of SentencePiece.
        proto = self._processor.encode(cleaned, out_type="serialized_proto")
        for piece, *offsets in _read_pieces(proto):
            start, end = (alignment.text_before[offset] for offset in offsets)
            for number, after in self._parts(piece):
                first, limit = alignment.span(start, end - after)
                ids.append(number)
                starts.append(first)
                ends.append(limit)
                start = end - after
        return ids, starts, ends

    def _decompose(self, text):
        # Surrogates cannot be encoded.
        text = text.encode("utf-8", "ignore").decode()
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c))
        return text.lower() if self.lowercase else text

    def _find_blank(self, cleaned):
        """Return whether the pieces of cleaned text are nothing but spaces."""
        ids = self._processor.encode(cleaned, out_type=int)
        return all(number == self._space_id for number in ids)

    def _find_parts(self, number):
        piece = self._processor.id_to_piece(number)
        parts = comma_parts(self._processor, piece)
        return [(self._processor.piece_to_id(part), after) for part, after in parts]


def comma_parts(processor: Any, piece: str) -> list[tuple[str, int]]:
    """Return the pieces that replace a piece, and the bytes of its text after each.

    The original separates a number from the comma that follows it, so that a number is
    the same piece with and without a comma: it encodes the digits again and adds the
    comma. It also intends to drop the space piece that this adds to digits inside a
    word, but compares a character with bytes, which never are equal, and so keeps it.
    """
    if len(piece) < 2 or piece[-1] != "," or not piece[-2].isdigit():
        return [(piece, 0)]
    digits = piece[:-1].replace(SPACE_PIECE, "")
    parts = [*processor.encode(digits, out_type=str), ","]
    sizes = [len(part.replace(SPACE_PIECE, "").encode()) for part in parts]
    return [(part, sum(sizes[i + 1 :])) for i, part in enumerate(parts)]


class _Alignment:
    """Map from the bytes of a cleaned text to the characters they come from.

    It counts the bytes that pieces contain, not the blank ones: white space, and
    characters that the model's own normalization removes. `text_before` is their
    number before each byte of the cleaned text.
    """

    def __init__(self, text, decompose, is_blank):
        cleaned = [decompose(character) for character in text]
        self._is_accent = [not part for part in cleaned]
        self._origin, sizes = [], []
        after_space = True
        for i, part in enumerate(cleaned):
            is_space = text[i].isspace()
            size = 1 if is_space else len(part.encode())
            size = 0 if is_space and after_space else size
            after_space = is_space
            blank = is_space or is_blank(part)
            sizes += [0 if blank else 1] * size
            self._origin += [] if blank else [i] * size
        self.text_before = [0, *itertools.accumulate(sizes)]
        # For a span after the end of the text.
        self._origin.append(len(text))

    def span(self, start, end):
        """Return a span of bytes that are not blank as a span of characters."""
        first = self._origin[start]
        if start >= end:
            return first, first
        limit = self._origin[end - 1] + 1
        while limit < len(self._is_accent) and self._is_accent[limit]:
            limit += 1
        return first, limit


def _read_pieces(proto):
    """Yield the id, the first byte and the end byte of each piece."""
    for field, piece in _fields(proto):
        if field == 2:
            values = dict(_fields(piece))
            yield tuple(values.get(name, 0) for name in (2, 4, 5))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the integer and bytes fields of a protocol buffer."""
    data = iter(message)
    # Numbers of fields below 16 take one byte.
    for tag in data:
        field, kind = divmod(tag, 8)
        value = shift = 0
        for byte in data:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield field, bytes(itertools.islice(data, value)) if kind == 2 else value
