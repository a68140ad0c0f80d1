"""BERT's WordPiece tokenizer in plain Python, with offsets."""

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from albert_tf_lite.tokens import Tokens

# In google-research/bert, google-research/albert and albert_zh; 100 in transformers.
MAX_INPUT_CHARS_PER_WORD = 200
# The longest words whose pieces are kept, in characters.
CACHED = 20

# The characters of the original's `_is_chinese_char`, each of which is a word.
IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


def strips_accents(lowercase: bool, strip_accents: bool | None) -> bool:
    """Return whether accents are stripped, by default if text is lower-cased."""
    return lowercase if strip_accents is None else strip_accents


class _Piece(NamedTuple):
    """A piece of a word, with its characters in the text or in the word."""

    id: int
    start: int
    end: int


class WordPieceTokenizer:
    """Tokenizer with the ids of `albert_tf.tokenizers.WordPieceTokenizer`.

    Args:
        tokens: list of strings, the vocabulary.
        lowercase: bool. Lower-case the text.
        strip_accents: optional bool. Strip accents; by default if `lowercase`.
        tokenize_chinese_chars: bool. Make each Chinese character a word.
        max_input_chars_per_word: int. Longer words are unknown.
        added_tokens: optional dict of tokens that are found anywhere in a text, and
            whether in any case.

    Reference:
        google-research/bert `tokenization.py`, `BasicTokenizer` and
        `WordpieceTokenizer`.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        lowercase: bool = True,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
        max_input_chars_per_word: int = MAX_INPUT_CHARS_PER_WORD,
        added_tokens: dict[str, bool] | None = None,
    ):
        # The original keeps the last row of a repeated token.
        self.ids = {token: number for number, token in enumerate(tokens)}
        self._size = len(tokens)
        self.unk_token = "[UNK]"
        self.pad_token_id = self.ids["[PAD]"]
        self.unk_token_id = self.ids["[UNK]"]
        self.cls_token_id = self.ids["[CLS]"]
        self.sep_token_id = self.ids["[SEP]"]
        self.lowercase = lowercase
        self.max_input_chars_per_word = max_input_chars_per_word
        self._added_tokens = added_tokens or {}
        self._strips_accents = strips_accents(lowercase, strip_accents)
        self._longest = min(max(map(len, self.ids)), max_input_chars_per_word)
        ideographs = IDEOGRAPHS if tokenize_chinese_chars else ()
        self._cleaning = _Cleaning(ideographs)
        self._word = _word_pattern(ideographs)
        # At most 30 MB each: a piece takes 64 bytes, and a word has at most CACHED.
        self._find_cached = functools.lru_cache(2**14)(self._find_pieces)
        self._place_cached = functools.lru_cache(2**14)(self._place_pieces)

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        if self._added_tokens:
            return self.tokenize_with_offsets(text).ids
        words = text.translate(self._cleaning).split()
        return [number for word in words for number, _ in self._pieces(word)]

    def vocabulary_size(self) -> int:
        """Return the number of tokens."""
        return self._size

    def rows_with_offsets(self, texts: Sequence[str]) -> Iterator[Tokens]:
        """Yield what `tokenize_with_offsets` returns for each text."""
        return map(self.tokenize_with_offsets, texts)

    def tokenize_with_offsets(self, text: str) -> Tokens:
        """Return the ids of a text and their starts and ends, in characters.

        Stripped accents belong to the character before them.
        """
        if not self._added_tokens:
            return self._ordinary_tokens(text)
        for token, any_case in self._added_tokens.items():
            if any_case and self.lowercase:
                text = re.sub(
                    f"(?i){re.escape(token)}", token.replace("\\", r"\\"), text
                )
        tokens, begin = Tokens([], [], []), 0
        for run, number in self._between(text, list(self._added_tokens)):
            if number is None:
                inside = self._ordinary_tokens(run)
            else:
                inside = Tokens([number], [0], [len(run)])
            tokens.ids.extend(inside.ids)
            tokens.starts.extend(begin + start for start in inside.starts)
            tokens.ends.extend(begin + end for end in inside.ends)
            begin += len(run)
        return tokens

    def _between(
        self, text: str, tokens: list[str]
    ) -> Iterator[tuple[str, int | None]]:
        """Yield the runs of a text, with the id of a run that is one of `tokens`."""
        if not tokens:
            yield text, None
            return
        token, others = tokens[0], tokens[1:]
        for i, run in enumerate(text.split(token)):
            if i:
                yield token, self.ids[token]
            yield from self._between(run, others)

    def _ordinary_tokens(self, text: str) -> Tokens:
        """Return the tokens of a text without added tokens."""
        words = list(self._word.finditer(text))
        cleaned = text.translate(self._cleaning)
        if [word[0] for word in words] != cleaned.split():
            return self._cleaned_tokens(text, cleaned)
        tokens = Tokens([], [], [])
        for word in words:
            is_short = len(word[0]) <= CACHED
            place = self._place_cached if is_short else self._place_pieces
            pieces = place(word[0])
            if pieces is None:
                return self._cleaned_tokens(text, cleaned)
            begin = word.start()
            for number, start, end in pieces:
                tokens.ids.append(number)
                tokens.starts.append(begin + start)
                tokens.ends.append(begin + end)
        return tokens

    def _place_pieces(self, word: str) -> list[_Piece] | None:
        """Return the pieces of a word that cleaning keeps, placed in the word.

        `None` if it begins with an accent, which may belong to the word before.
        """
        if not self._normalize(word[0]):
            return None
        return self._placed(word, range(len(word)), word)

    def _cleaned_tokens(self, text: str, cleaned: str) -> Tokens:
        """Return the tokens of a text of which cleaning changes words."""
        # The character of the text that each character of the cleaned one comes from.
        origin = [i for i, c in enumerate(text) for _ in c.translate(self._cleaning)]
        tokens = Tokens([], [], [])
        for word in re.finditer(r"\S+", cleaned):
            letters = origin[word.start() : word.end()]
            for piece in self._placed(word[0], letters, text):
                tokens.ids.append(piece.id)
                tokens.starts.append(piece.start)
                tokens.ends.append(piece.end)
        return tokens

    def _placed(self, word: str, letters: Sequence[int], text: str) -> list[_Piece]:
        """Return the pieces of a word, placed in the text.

        `letters` are the positions in the text of the characters of the word.
        """
        # The character that each byte of the word comes from. Bytes, because combining
        # marks of several sizes may change places.
        origin = [i for i in letters for _ in self._normalize(text[i]).encode()]
        pieces, end = [], 0
        for number, length in self._pieces(word):
            begin, end = end, end + length
            limit = origin[end - 1] + 1
            while limit < len(text) and not self._normalize(text[limit]):
                limit += 1
            pieces.append(_Piece(number, origin[begin], limit))
        return pieces

    def _normalize(self, word):
        if self.lowercase:
            word = word.lower()
        if word.isascii() or not self._strips_accents:
            return word
        decomposed = unicodedata.normalize("NFD", word)
        return "".join(c for c in decomposed if unicodedata.category(c) != "Mn")

    def _pieces(self, text):
        is_short = len(text) <= CACHED
        return self._find_cached(text) if is_short else self._find_pieces(text)

    def _find_pieces(self, text):
        """Return id and number of bytes of each piece of the text between spaces."""
        text = self._normalize(text)
        if not text.isalnum():
            # Each punctuation character is a word.
            text = "".join(f" {c} " if _is_punctuation(c) else c for c in text)
        return [piece for word in text.split() for piece in self._cut(word)]

    def _cut(self, word):
        """Cut a word into the longest pieces of the vocabulary."""
        whole = [(self.unk_token_id, len(word.encode()))]
        if len(word) > self.max_input_chars_per_word:
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


def _word_pattern(ideographs: Sequence[range]) -> re.Pattern:
    """Compile the pattern of words between spaces; an ideograph is one itself."""
    if not ideographs:
        return re.compile(r"\S+")
    codes = "".join(f"{chr(block[0])}-{chr(block[-1])}" for block in ideographs)
    return re.compile(rf"[{codes}]|[^\s{codes}]+")


class _Cleaning(dict):
    """Table for `str.translate` that keeps, drops or separates a character.

    It remembers the characters of the basic plane only, because there are a million.
    """

    def __init__(self, separate: Sequence[range]):
        self._separate = separate

    def __missing__(self, code):
        character = chr(code)
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            cleaned = " "
        elif character == "\ufffd" or category in ("Cc", "Cf", "Cs"):
            cleaned = ""
        elif any(code in ideographs for ideographs in self._separate):
            cleaned = f" {character} "
        else:
            cleaned = character
        if code < 0x10000:
            self[code] = cleaned
        return cleaned


def _is_punctuation(character):
    # The original includes all ASCII symbols, such as "$" and "`".
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character).startswith("P")
