"""Google ALBERT's tokenizer of English, with the package `sentencepiece`."""

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from albert_tf_lite.errors import import_extra
from albert_tf_lite.tokens import Tokens

# Represents a space, at the start of a word.
SPACE_PIECE = "\u2581"


class Processor(Protocol):
    """The part of `sentencepiece.SentencePieceProcessor` that is used here."""

    def encode(self, text: str, out_type: type) -> list: ...


class Replacement(NamedTuple):
    """A piece in place of another, and the text of the pieces after it."""

    piece: str
    text_after: str


class SentencePieceTokenizer:
    """Tokenizer with the ids of `albert_tf.tokenizers.SentencePieceTokenizer`.

    Requires SentencePiece up to 0.2.1: later releases choose another one of two equally
    likely segmentations of a word than TensorFlow Text and the original.

    Reference:
        google-research/albert `tokenization.py`, `preprocess_text` and `encode_ids`.
    """

    def __init__(self, proto: bytes, lowercase: bool = True):
        sentencepiece = import_extra("sentencepiece")
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(proto)
        self.lowercase = lowercase
        self.unk_token = "<unk>"
        self.pad_token_id = self._processor.piece_to_id("<pad>")
        self.unk_token_id = self._processor.piece_to_id("<unk>")
        self.cls_token_id = self._processor.piece_to_id("[CLS]")
        self.sep_token_id = self._processor.piece_to_id("[SEP]")
        self._replacements = functools.cache(self._find_replacements)

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        ids: list[int] = []
        for number in self._processor.encode(self._clean(text), out_type=int):
            ids += [replaced for replaced, _ in self._replacements(number)]
        return ids

    def vocabulary_size(self) -> int:
        """Return the number of tokens."""
        return self._processor.get_piece_size()

    def rows_with_offsets(self, texts: Sequence[str]) -> Iterator[Tokens]:
        """Yield what `tokenize_with_offsets` returns for each text."""
        return map(self.tokenize_with_offsets, texts)

    def tokenize_with_offsets(self, text: str) -> Tokens:
        """Return the ids of a text and their starts and ends, in characters.

        Offsets exclude the space before a word. A piece that is only a space has an
        empty span at the next text.
        """
        cleaned = self._clean(text)
        spans = [*self._spans(text, cleaned), (len(text), len(text))]
        tokens = Tokens([], [], [])
        done = 0
        # The pieces, joined, are the normalized text.
        for number, piece in zip(
            self._processor.encode(cleaned, out_type=int),
            self._processor.encode(cleaned, out_type=str),
            strict=True,
        ):
            start, done = done, done + len(piece.replace(SPACE_PIECE, ""))
            for replaced, text_after in self._replacements(number):
                end = done - len(text_after)
                tokens.ids.append(replaced)
                tokens.starts.append(spans[start][0])
                if start < end:
                    tokens.ends.append(spans[end - 1][1])
                else:
                    tokens.ends.append(spans[start][0])
                start = end
        return tokens

    def _clean(self, text):
        return self._decompose(" ".join(text.split()))

    def _decompose(self, text):
        # Surrogates cannot be encoded.
        text = text.encode("utf-8", "ignore").decode()
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c))
        return text.lower() if self.lowercase else text

    def _spans(self, text, cleaned):
        """Yield the span in a text of each normalized character but spaces."""
        # The character of the text that each character of `cleaned` comes from.
        origin = []
        follows_space = True
        for i, character in enumerate(text):
            is_space = character.isspace()
            # Of several spaces, cleaning keeps one; at the start none.
            if not (is_space and follows_space):
                origin += [i] * len(self._decompose(character))
            follows_space = is_space
        normalized, begins = self._processor.normalize(cleaned, with_offsets=True)
        for c, begin, end in zip(normalized, begins, begins[1:], strict=False):
            if c == SPACE_PIECE:
                continue
            # Without the characters after it that normalization removes.
            while end > begin + 1 and self._is_blank(cleaned[end - 1]):
                end -= 1
            limit = origin[max(begin, end - 1)] + 1
            while limit < len(text) and not self._decompose(text[limit]):
                limit += 1
            yield origin[begin], limit

    def _is_blank(self, character):
        return not self._processor.normalize(character).strip(SPACE_PIECE)

    def _find_replacements(self, number):
        """Return the ids in place of one, each with the text after it."""
        to_id = self._processor.piece_to_id
        pieces = comma_parts(self._processor, self._processor.id_to_piece(number))
        return [(to_id(one.piece), one.text_after) for one in pieces]


def comma_parts(processor: Processor, piece: str) -> list[Replacement]:
    """Return the pieces that replace a piece, and the text after each of them.

    The original separates a number from the comma that follows it, so that a number is
    the same piece with and without a comma: it encodes the digits again and adds the
    comma. It also intends to drop the space piece that this adds to digits inside a
    word, but compares a character with bytes, which never are equal, and so keeps it.
    """
    if len(piece) < 2 or piece[-1] != "," or not piece[-2].isdigit():
        return [Replacement(piece, "")]
    digits = piece[:-1].replace(SPACE_PIECE, "")
    pieces = [*processor.encode(digits, out_type=str), ","]
    replacements = []
    for i, one in enumerate(pieces):
        text_after = "".join(pieces[i + 1 :]).replace(SPACE_PIECE, "")
        replacements.append(Replacement(one, text_after))
    return replacements
