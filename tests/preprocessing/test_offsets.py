"""Offsets of tokens in arbitrary Python strings."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_tokenizer import split_words
from sentence_piece_reference import clean_up, train_model

from albert_tf.preprocessing.task_preprocessors import without_overlap
from albert_tf.preprocessing.texts import tokenize_with_offsets
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abceiozßσςα１ａ\u1112\u1161\u11ab"
TOKENS = [
    *(*SPECIAL, *"我想吃北京。，！", *LETTERS, *(f"##{letter}" for letter in LETTERS)),
    *("hello", "##llo", "cafe", "##😀"),
]
# Spaces, controls, full-width letters, marks, emoji, halves of surrogate pairs.
ODD = "aAbEeéİΣσßﬁ한我想北京，。 .'\t\n\u3000\xa0\0\x7f\ufeff\ufffd\u200b\u200d"
ODD += "\u0301\u0323Ａ１😀👨🏽𠮷\ud800\udfff"
ANY = st.characters(exclude_categories=())
TEXT = st.one_of(
    st.text(ODD, max_size=30),
    st.text(ANY, max_size=20),
    st.text(st.one_of(ANY, st.sampled_from(ODD)), max_size=30),
    st.text("ab\ud800 ", min_size=95, max_size=240),
)
TEN_TEXTS = st.lists(TEXT, min_size=10, max_size=10)


@pytest.fixture(scope="module", params=["word pieces", "sentence pieces"])
def tokenizer(request):
    if request.param == "word pieces":
        return WordPieceTokenizer(TOKENS)
    return SentencePieceTokenizer(train_model())


def check(tokenizer, texts):
    columns = tokenize_with_offsets(tokenizer, texts)
    ids, starts, ends = (column.to_list() for column in columns)
    seen = ["".join(c for c in text if not 0xD800 <= ord(c) < 0xE000) for text in texts]
    assert ids == tokenizer(seen).to_list()
    for text, *row in zip(texts, ids, starts, ends, strict=True):
        assert row[1] == sorted(row[1])
        assert row[2] == sorted(row[2])
        for token, start, end in zip(*row, strict=True):
            assert 0 <= start <= end <= len(text)
            check_token(tokenizer, token, text[start:end])
    # Without overlap the same characters are covered, each by one token.
    firsts, lasts = (column.to_list() for column in without_overlap(*columns[1:]))
    for *before, first, last in zip(starts, ends, firsts, lasts, strict=True):
        assert len(first) == len(last) == len(before[0])
        characters = covered(first, last)
        assert len(characters) == len(set(characters))
        assert set(characters) == set(covered(*before))


def covered(starts, ends):
    return [i for a, b in zip(starts, ends, strict=True) for i in range(a, b)]


def check_token(tokenizer, token, surface):
    """Assert that the original's rules turn the characters into the piece."""
    if token == tokenizer.unk_token_id:
        return
    # Python and TensorFlow use different versions of Unicode.
    if any(unicodedata.category(c) in ("Cn", "Co") for c in surface):
        return
    piece = tokenizer.id_to_token(token).removeprefix("##").removeprefix("\u2581")
    surface = "".join(c for c in surface if not 0xD800 <= ord(c) < 0xE000)
    if isinstance(tokenizer, WordPieceTokenizer):
        cleaned = "".join(split_words(surface))
    else:
        cleaned = clean_up(surface)
        # A surface includes what SentencePiece's own normalization removes.
        cleaned = "".join(c for c in cleaned if unicodedata.category(c)[0] != "C")
    # Neighbouring letters decide whether a sigma is a final one.
    assert piece.replace("ς", "σ") in cleaned.replace("ς", "σ")


@settings(deadline=None, max_examples=50)
@given(texts=TEN_TEXTS)
def test_offsets_of_500_random_texts(tokenizer, texts):
    check(tokenizer, texts)
