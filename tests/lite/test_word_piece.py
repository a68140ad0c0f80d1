"""WordPiece in plain Python: ids and offsets are those of the graph."""

import random

import pytest
from reference_tokenizer import assigned, vocabulary_of

from albert_tf.preprocessing.texts import tokenize_with_offsets
from albert_tf.tokenizers import WordPieceTokenizer as InGraph
from albert_tf_lite.word_piece import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

BMP = assigned(range(0x10000))
ODD = "aAéÉñÇöẞİıŉﬁ'’.- ΣσςΑά\u0301\u00ad한국가각ᄒ\u1161\u11ab我想中文，。！Ａｂ１"
ODD += "\0\x0b\x1f\x7f\x85\u200b\u2028\u3000\ufeff\ufffd\t\n\xa0😀\u200d\ufe0f🏽"
ODD += "か\u3099\u302e"


def check(tokens, texts, lowercase=True):
    tokenizer = WordPieceTokenizer(tokens, lowercase)
    columns = tokenize_with_offsets(InGraph(tokens, lowercase=lowercase), texts)
    rows = zip(*(column.to_list() for column in columns), strict=True)
    for text, row in zip(texts, rows, strict=True):
        assert tokenizer.tokenize_with_offsets(text) == tuple(row), repr(text)
        assert tokenizer.tokenize(text) == row[0], repr(text)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("alphabet", [ODD, BMP], ids=["odd", "bmp"])
def test_random_texts(alphabet, lowercase):
    rng = random.Random(len(alphabet))
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(16))) for _ in range(300)]
    texts += ["".join(rng.choices(alphabet, k=400)) for _ in range(10)]
    check(vocabulary_of(texts, lowercase, rng, 0.9), texts, lowercase)


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
