"""BERT's WordPiece tokenizer in plain Python, with offsets."""

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence

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


class WordPieceTokenizer:
    """Tokenizer with the ids of `albert_tf.tokenizers.WordPieceTokenizer`.

    The arguments are those of that class.

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
        self.pad_token_id, self.unk_token_id, self.cls_token_id, self.sep_token_id = (
            self.ids[token] for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
        )
        self.lowercase = lowercase
        self.max_input_chars_per_word = max_input_chars_per_word
        self._added_tokens = added_tokens or {}
        self._strips_accents = lowercase if strip_accents is None else strip_accents
        self._longest = min(max(map(len, self.ids)), max_input_chars_per_word)
        separate = IDEOGRAPHS if tokenize_chinese_chars else ()
        self._cleaning = _Cleaning(separate)
        ideographs = "".join(f"{chr(x[0])}-{chr(x[-1])}" for x in separate)
        self._word = re.compile(
            rf"[{ideographs}]|[^\s{ideographs}]+" if separate else r"\S+"
        )
        # At most 30 MB each: a piece takes 64 bytes, and a word has at most CACHED.
        self._find_cached = functools.lru_cache(2**14)(self._find_pieces)
        self._place_cached = functools.lru_cache(2**14)(self._place_pieces)

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        if self._added_tokens:
            return self.tokenize_with_offsets(text)[0]
        words = text.translate(self._cleaning).split()
        return [number for word in words for number, _ in self._pieces(word)]

    def vocabulary_size(self) -> int:
        """Return the number of tokens."""
        return self._size

    def rows_with_offsets(self, texts: Sequence[str]) -> Iterator[tuple]:
        """Yield what `tokenize_with_offsets` returns for each text."""
        return map(self.tokenize_with_offsets, texts)

    def tokenize_with_offsets(
        self, text: str
    ) -> tuple[list[int], list[int], list[int]]:
        """Return the ids of a text and their starts and ends, in characters.

        Stripped accents belong to the character before them.
        """
        if not self._added_tokens:
            return self._ordinary_tokens(text)
        columns: tuple = [], [], []
        start = 0
        for token, any_case in self._added_tokens.items():
            if any_case and self.lowercase:
                text = re.sub(
                    f"(?i){re.escape(token)}", token.replace("\\", r"\\"), text
                )
        for part, number in self._between(text, *self._added_tokens):
            found = [number], [0], [len(part)]
            if number is None:
                found = self._ordinary_tokens(part)
            for column, values, before in zip(
                columns, found, (0, start, start), strict=True
            ):
                column.extend(before + x for x in values)
            start += len(part)
        return columns

    def _between(self, text, *tokens):
        """Yield the parts of a text, with the id of a part that is one of `tokens`."""
        if not tokens:
            yield text, None
            return
        token, *others = tokens
        for i, part in enumerate(text.split(token)):
            if i:
                yield token, self.ids[token]
            yield from self._between(part, *others)

    def _ordinary_tokens(self, text):
        found = [(word[0], word.start()) for word in self._word.finditer(text)]
        cleaned = text.translate(self._cleaning)
        if [word for word, _ in found] != cleaned.split():
            return self._cleaned_tokens(text, cleaned)
        ids, starts, ends = [], [], []
        for word, begin in found:
            is_short = len(word) <= CACHED
            pieces = (self._place_cached if is_short else self._place_pieces)(word)
            if pieces is None:
                return self._cleaned_tokens(text, cleaned)
            for number, start, end in pieces:
                ids.append(number)
                starts.append(begin + start)
                ends.append(begin + end)
        return ids, starts, ends

    def _place_pieces(self, word):
        """Return id, start and end of each piece of a word that cleaning keeps.

        `None` if it begins with an accent, which may belong to the word before.
        """
        return (
            self._placed(word, range(len(word)), word)
            if self._normalize(word[0])
            else None
        )

    def _cleaned_tokens(self, text, cleaned):
        """Return the tokens of a text of which cleaning changes words."""
        position = [i for i, c in enumerate(text) for _ in c.translate(self._cleaning)]
        found = []
        for word in re.finditer(r"\S+", cleaned):
            found += self._placed(word[0], position[word.start() : word.end()], text)
        return tuple(map(list, zip(*found, strict=True))) or ([], [], [])

    def _placed(self, word, letters, text):
        """Return id, start and end of each piece of a word.

        `letters` are the positions in the text of the characters of the word.
        """
        # The character that each byte of the word comes from. Bytes, because combining
        # marks of several sizes may change places.
        origin = [i for i in letters for _ in self._normalize(text[i]).encode()]
        found, end = [], 0
        for number, length in self._pieces(word):
            begin, end = end, end + length
            limit = origin[end - 1] + 1
            while limit < len(text) and not self._normalize(text[limit]):
                limit += 1
            found.append((number, origin[begin], limit))
        return found

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
