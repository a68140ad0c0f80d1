"""Make a small WordPiece vocabulary of characters from text.

    python examples/make_vocabulary.py OUTPUT TEXT...

Takes every character that stands in the text 25 times or more, those of GB2312's first
level (the 3,755 most common ones) that stand in it at all, ASCII and common
punctuation. Latin words and numbers are spelled, a character at a time.
"""

import collections
import pathlib
import sys
import unicodedata

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PUNCTUATION = "，。！？、；：“”‘’（）《》【】…—·～￥"
FREQUENT = 25


def make_vocabulary(text):
    """The tokens, most frequent characters first after the fixed ones."""
    # As the tokenizer does: lower case, accents stripped.
    letters = unicodedata.normalize("NFD", text.lower())
    counts = collections.Counter(x for x in letters if not unicodedata.combining(x))
    rows = range(0xB0, 0xD8)
    pairs = [bytes([row, column]) for row in rows for column in range(0xA1, 0xFF)]
    common = {pair.decode("gb2312", "ignore") for pair in pairs} - {""}
    ascii_characters = [chr(code).lower() for code in range(0x21, 0x7F)]
    pieces = ["##" + char for char in ascii_characters if char.isalnum()]
    kept = [
        char
        for char, count in counts.most_common()
        if (count >= FREQUENT or char in common) and not char.isspace()
    ]
    tokens = [*SPECIAL, *ascii_characters, *PUNCTUATION, *pieces, *kept]
    return list(dict.fromkeys(tokens))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    output, *sources = map(pathlib.Path, sys.argv[1:])
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    tokens = make_vocabulary(text)
    output.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    print(f"{output}: {len(tokens):,} tokens")


if __name__ == "__main__":
    main()
