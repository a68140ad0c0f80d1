"""BERT's tokenizer in plain Python, written from its published rules.

1. Drop NUL, U+FFFD and control characters (Cc, Cf) other than tab, line feed
   and carriage return; these three and every Zs character are spaces.
2. Put spaces around CJK ideographs; split at white space.
3. Uncased models: lower-case each word, decompose it (NFD), drop marks (Mn).
4. Each punctuation character is a word of its own.
5. Cut each word into the longest pieces of the vocabulary from left to right,
   later ones marked `##`. A word that cannot be cut, or is longer than 200
   characters, is `[UNK]`.
"""

import functools
import unicodedata

IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


# tf.strings.lower follows Unicode 13 and leaves these capitals of Unicode 14 and
# letters of Unicode 15; U+1734 was a mark (Mn) up to Unicode 13.
DIFFERING = {
    *map(ord, "\u1734\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8"),
    *range(0x10570, 0x10596),
    *range(0x1E030, 0x1E06E),
}


def assigned(codes):
    """Return the characters of `codes` that the running Python knows."""
    none = ("Cn", "Co", "Cs")
    known = (code for code in codes if unicodedata.category(chr(code)) not in none)
    return [chr(code) for code in known if code not in DIFFERING]


@functools.cache
def cleaned(character, split_ideographs=True):
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    if character in "\0\ufffd" or category in ("Cc", "Cf"):
        return ""
    ideograph = any(low <= ord(character) <= high for low, high in IDEOGRAPHS)
    if split_ideographs and ideograph:
        return f" {character} "
    return character


@functools.cache
def isolated_punctuation(character):
    # BERT counts every ASCII symbol as punctuation, such as "$" and "`".
    ascii_symbol = "!" <= character <= "~" and not character.isalnum()
    if ascii_symbol or unicodedata.category(character).startswith("P"):
        return f" {character} "
    return character


@functools.lru_cache(maxsize=100_000)
def split_words(text, lowercase=True, strip_accents=None, split_ideographs=True):
    words = []
    strip_accents = lowercase if strip_accents is None else strip_accents
    for word in "".join(cleaned(c, split_ideographs) for c in text).split():
        if lowercase:
            word = word.lower()
        if strip_accents:
            word = unicodedata.normalize("NFD", word)
            word = "".join(c for c in word if unicodedata.category(c) != "Mn")
        words.extend("".join(map(isolated_punctuation, word)).split())
    return tuple(words)


def vocabulary_of(texts, lowercase, rng, share=0.97, settings=(None, True, 200)):
    """Vocabulary of most characters of `texts` and some longer pieces."""
    words = (split_words(text, lowercase, *settings[:2]) for text in texts)
    words = sorted({word for row in words for word in row})
    pieces = {c for c in sorted({c for w in words for c in w}) if rng.random() < share}
    for word in words:
        start = rng.randrange(len(word))
        pieces.add(word[start : start + rng.randrange(2, 4)])
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return special + [f"{prefix}{x}" for x in sorted(pieces) for prefix in ("", "##")]


def word_pieces(word, ids, longest=200):
    if len(word) > longest:
        return ["[UNK]"]
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in ids:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def tokenize(
    text, ids, lowercase=True, strip_accents=None, split_ideographs=True, longest=200
):
    """Pieces of `text`; `ids` is a dict from token to id."""
    words = split_words(text, lowercase, strip_accents, split_ideographs)
    return [p for word in words for p in word_pieces(word, ids, longest)]
