"""Make a small WordPiece vocabulary of characters from text.

    python examples/make_vocabulary.py OUTPUT TEXT... [--min-count 25]

The vocabulary has every character that occurs at least `--min-count` times in the text,
every character of GB2312's first level (the 3,755 most common ones) that occurs at all,
ASCII and common punctuation. Latin words and numbers are split into characters.
"""

import argparse
import collections
import pathlib
import unicodedata

from albert_tf.pretraining.records.corpus import Corpus

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PUNCTUATION = "，。！？、；：“”‘’（）《》【】…—·～￥"


def make_vocabulary(text, min_count=25):
    """Return the fixed tokens, then the characters in descending frequency."""
    # Lower-case and strip accents, like the tokenizer.
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
        if (count >= min_count or char in common) and not char.isspace()
    ]
    tokens = [*SPECIAL, *ascii_characters, *PUNCTUATION, *pieces, *kept]
    return list(dict.fromkeys(tokens))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path, nargs="+")
    parser.add_argument("--min-count", type=int, default=25)
    arguments = parser.parse_args()
    # Also JSON lines, any encoding and compressed files, as for pretraining.
    corpus = Corpus(arguments.text)
    blocks = (documents for _, documents in corpus.blocks())
    text = "\n".join(line for block in blocks for lines in block for line in lines)
    print(*corpus.warnings, sep="\n", end="\n" * bool(corpus.warnings))
    tokens = make_vocabulary(text, arguments.min_count)
    arguments.output.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    print(f"{arguments.output}: {len(tokens):,} tokens")


if __name__ == "__main__":
    main()
