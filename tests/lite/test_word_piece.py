"""WordPiece in plain Python: ids and offsets are those of the graph."""

import json
import pathlib
import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_tokenizer import split_words

from albert_tf.preprocessing.texts import tokenize_with_offsets
from albert_tf.tokenizers import WordPieceTokenizer as InGraph
from albert_tf_lite.word_piece import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "tokenization.json"

# tf.strings.lower follows Unicode 13, see tests/tokenizers.
DIFFERING = "\u1734\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8"
BMP = [
    chr(code)
    for code in range(0x10000)
    if unicodedata.category(chr(code)) not in ("Cn", "Cs")
    and chr(code) not in DIFFERING
]
ODD = "aAéÉñÇöẞİıŉﬁ'’.- ΣσςΑά\u0301\u00ad한국가각ᄒ\u1161\u11ab我想中文，。！Ａｂ１"
ODD += "\0\x0b\x1f\x7f\x85\u200b\u2028\u3000\ufeff\ufffd\t\n\xa0😀\u200d\ufe0f🏽"
ODD += "か\u3099\u302e"


def vocabulary_of(texts, lowercase, share=0.9):
    """Most characters of the texts, and some longer pieces."""
    rng = random.Random(0)
    words = sorted({word for text in texts for word in split_words(text, lowercase)})
    pieces = {c for word in words for c in word if rng.random() < share}
    pieces |= {word[: rng.randrange(2, 5)] for word in words}
    return SPECIAL + [f"{x}{piece}" for piece in sorted(pieces) for x in ("", "##")]


TOKENS = {lowercase: vocabulary_of([ODD], lowercase) for lowercase in (True, False)}


def check(tokens, texts, lowercase=True):
    tokenizer = WordPieceTokenizer(tokens, lowercase)
    columns = tokenize_with_offsets(InGraph(tokens, lowercase=lowercase), texts)
    rows = zip(*(column.to_list() for column in columns), strict=True)
    for text, row in zip(texts, rows, strict=True):
        assert tokenizer.tokenize_with_offsets(text) == tuple(row), repr(text)
        assert tokenizer.tokenize(text) == row[0], repr(text)


def test_golden_entries():
    entries = json.loads(GOLDEN.read_text("utf-8"))["zh"]
    ids = {token: i for i, token in enumerate(SPECIAL)}
    for entry in entries:
        ids.update(zip(entry["tokens"], entry["ids"], strict=True))
    tokens = sorted(set(ids) | set(SPECIAL))
    tokenizer = WordPieceTokenizer(tokens)
    for entry in entries:
        found = [tokens[i] for i in tokenizer.tokenize(entry["text"])]
        assert found == entry["tokens"], entry["text"]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("alphabet", [ODD, BMP], ids=["odd", "bmp"])
def test_random_texts(alphabet, lowercase):
    rng = random.Random(len(alphabet))
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(16))) for _ in range(300)]
    texts += ["".join(rng.choices(alphabet, k=400)) for _ in range(10)]
    check(vocabulary_of(texts, lowercase), texts, lowercase)


@settings(max_examples=25)
@given(
    st.lists(
        st.text(st.one_of(st.sampled_from(ODD), st.sampled_from(BMP)), max_size=120),
        min_size=10,
        max_size=10,
    ),
    st.booleans(),
)
def test_any_texts(texts, lowercase):
    check(TOKENS[lowercase], texts, lowercase)


def test_lone_surrogates_are_skipped():
    tokenizer = WordPieceTokenizer([*SPECIAL, "ab", "b"])
    found = tokenizer.tokenize_with_offsets("a\ud800b \ud83d b")
    assert found == ([5, 6], [0, 6], [3, 7])
    assert tokenizer.tokenize("a\ud800b \ud83d b") == [5, 6]


def test_long_words_and_unreachable_tokens():
    texts = ["a" * n + "é中" for n in (99, 100, 101, 250)]
    texts += ["a b é \u2028", "a\u3000b"]
    tokens = [*SPECIAL, "a", "##a", "e", "##e", "b", "##b", "ab", "中"]
    tokens += ["a", "", "##", "\u2028", "a\u3000b", "a" * 101, "é"]
    for lowercase in (True, False):
        check(tokens, texts, lowercase)
