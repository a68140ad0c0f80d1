"""BERT's WordPiece tokenizer in plain Python: ids, and where in the text they stand."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence

from albert_tf_lite.errors import AlbertError

MAX_CHARACTERS_PER_WORD = 100
# Words of which the pieces are remembered.
REMEMBERED_WORDS = 2**16

# `_is_chinese_char` of the original: each of these is a word of its own.
IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)
# No text, and nothing that UTF-8 could hold.
SURROGATE = "Cs"


class WordPieceTokenizer:
    """Strings to ids, equal to those of `albert_tf.tokenizers.WordPieceTokenizer`.

    Args:
        tokens: list of strings, the vocabulary; the position is the id. It must hold
            `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`.
        lowercase: bool. Lower-case, and strip accents.

    Attributes:
        pad_token_id, cls_token_id, sep_token_id: int.

    Raises:
        AlbertError: if one of these tokens is missing.

    Reference:
        google-research/bert `tokenization.py`, `BasicTokenizer` and
        `WordpieceTokenizer`.
    """

    def __init__(self, tokens: Sequence[str], lowercase: bool = True):
        # Of a repeated token the original keeps the last row.
        self.ids = {token: number for number, token in enumerate(tokens)}
        special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
        missing = [token for token in special if token not in self.ids]
        if missing:
            raise AlbertError(
                f"The vocabulary of {len(self.ids)} tokens lacks {' '.join(missing)}. "
                "Use the vocab.txt that came with the checkpoint."
            )
        self.pad_token_id, self.unk_token_id, self.cls_token_id, self.sep_token_id = (
            self.ids[token] for token in special
        )
        self.lowercase = lowercase
        longest = max(map(len, self.ids))
        self._longest = min(longest, MAX_CHARACTERS_PER_WORD)
        self._cleaning = _Cleaning()
        remember = functools.lru_cache(REMEMBERED_WORDS)
        self._pieces = remember(self._pieces)
        self._ids_of_word = remember(self._ids_of_word)

    def tokenize(self, text: str) -> list[int]:
        """The ids of a text, without special tokens."""
        ids = []
        for word in text.translate(self._cleaning).split():
            ids += self._ids_of_word(word)
        return ids

    def tokenize_with_offsets(
        self, text: str
    ) -> tuple[list[int], list[int], list[int]]:
        """The ids of a text, and of each where it starts and ends, in characters.

        `text[start:end]` is what a piece was made of. Accents that were stripped belong
        to the character before them.
        """
        places = [i for i, c in enumerate(text) if unicodedata.category(c) != SURROGATE]
        characters = [text[i] for i in places]
        ids, starts, ends = [], [], []
        for word in self._words(characters):
            normalized = self._normalize("".join(characters[i] for i in word))
            # The character that each byte of the word was made from, in bytes, for
            # combining marks of several sizes may change places.
            origin = [i for i in word for _ in self._normalize(characters[i]).encode()]
            end = 0
            for part in _split_punctuation(normalized):
                for number, length in self._pieces(part):
                    begin, end = end, end + length
                    ids.append(number)
                    starts.append(places[origin[begin]])
                    after = self._after_accents(characters, origin[end - 1] + 1)
                    ends.append(places[after - 1] + 1)
        return ids, starts, ends

    def _words(self, characters):
        """The words between spaces, each a list of positions in `characters`."""
        words = [[]]
        for i, character in enumerate(characters):
            for cleaned in character.translate(self._cleaning):
                if cleaned.isspace():
                    words.append([])
                else:
                    words[-1].append(i)
        return filter(None, words)

    def _after_accents(self, characters, i):
        """The first position from `i` on that is no accent which was stripped."""
        while i < len(characters) and self._is_stripped(characters[i]):
            i += 1
        return i

    def _is_stripped(self, character):
        is_accent = unicodedata.category(character) == "Mn"
        return is_accent and not self._normalize(character)

    def _normalize(self, word):
        if word.isascii() or not self.lowercase:
            return word.lower() if self.lowercase else word
        decomposed = unicodedata.normalize("NFD", word.lower())
        return "".join(c for c in decomposed if unicodedata.category(c) != "Mn")

    def _ids_of_word(self, word):
        """The ids of what stands between two spaces."""
        parts = _split_punctuation(self._normalize(word))
        return [number for part in parts for number, _ in self._pieces(part)]

    def _pieces(self, word):
        """The id and the bytes of each piece of a word, the longest first."""
        whole = [(self.unk_token_id, len(word.encode()))]
        if len(word) > MAX_CHARACTERS_PER_WORD:
            return whole
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self.ids.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return whole
            pieces.append((number, len(word[start:end].encode())))
            start = end
        return pieces


class _Cleaning(dict):
    """What a character becomes: itself, nothing, a space, or itself between spaces."""

    def __missing__(self, code):
        character = chr(code)
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            cleaned = " "
        elif character == "\ufffd" or category in ("Cc", "Cf", SURROGATE):
            cleaned = ""
        elif any(code in ideographs for ideographs in IDEOGRAPHS):
            cleaned = f" {character} "
        else:
            cleaned = character
        self[code] = cleaned
        return cleaned


def _split_punctuation(word):
    """The words of a word: each punctuation character is one."""
    if word.isalnum():
        return (word,)
    spaced = (f" {c} " if _is_punctuation(c) else c for c in word)
    return "".join(spaced).split()


def _is_punctuation(character):
    # The original counts all symbols of ASCII, such as "$" and "`".
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character).startswith("P")
