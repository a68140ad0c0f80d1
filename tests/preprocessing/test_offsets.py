"""Offsets of tokens in any Python string."""

import unicodedata

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_tokenizer import split_words
from sentence_piece_reference import clean_up, train_model

from albert_tf.preprocessing.offsets import tokenize_with_offsets, without_overlap
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
# More at once take less time.
TWENTY_FIVE_TEXTS = st.lists(TEXT, min_size=25, max_size=25)


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
    firsts, lasts = without_overlap(*columns[1:])
    for row in zip(firsts.to_list(), lasts.to_list(), strict=True):
        characters = [
            i for start, end in zip(*row, strict=True) for i in range(start, end)
        ]
        assert len(characters) == len(set(characters))
    for before, after in zip((starts, ends), (firsts, lasts), strict=True):
        for row, other in zip(before, after.to_list(), strict=True):
            assert len(row) == len(other)
    covered = [covered_characters(*row) for row in zip(starts, ends, strict=True)]
    still = zip(firsts.to_list(), lasts.to_list(), strict=True)
    assert covered == [covered_characters(*row) for row in still]


def covered_characters(starts, ends):
    spans = zip(starts, ends, strict=True)
    return {i for start, end in spans for i in range(start, end)}


def check_token(tokenizer, token, surface):
    """The piece stands in what its characters become, by the original's rules."""
    if token == tokenizer.unk_token_id:
        return
    # Python and TensorFlow know other versions of Unicode.
    if any(unicodedata.category(c) in ("Cn", "Co") for c in surface):
        return
    piece = tokenizer.id_to_token(token).removeprefix("##").removeprefix("\u2581")
    surface = "".join(c for c in surface if not 0xD800 <= ord(c) < 0xE000)
    if isinstance(tokenizer, WordPieceTokenizer):
        cleaned = "".join(split_words(surface))
    else:
        cleaned = clean_up(surface)
        # What SentencePiece's own normalization removes is in a surface, too.
        cleaned = "".join(c for c in cleaned if unicodedata.category(c)[0] != "C")
    # A sigma is a final one by the letters around it.
    assert piece.replace("ς", "σ") in cleaned.replace("ς", "σ")


@settings(deadline=None, max_examples=50)
@given(texts=TEN_TEXTS)
def test_500_random_texts(tokenizer, texts):
    check(tokenizer, texts)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(texts=TWENTY_FIVE_TEXTS)
def test_10_000_random_texts(tokenizer, texts):
    check(tokenizer, texts)


@pytest.mark.parametrize(
    ("text", "surfaces"),
    [
        ("我　 想\t北\n京", ["我", "想", "北", "京"]),
        ("cafe\u0301。Ａ１", ["cafe\u0301", "。", "Ａ", "１"]),
        ("he\u200bllo", ["he\u200bllo"]),
        ("\ud83d我\ude00\udfff想\ud800", ["我", "想"]),
        ("ca\udc80fe 北", ["ca\udc80fe", "北"]),
        ("𠮷野" + "a" * 101 + "我", ["𠮷", "野", "a" * 101, "我"]),
        ("", []),
    ],
)
def test_surfaces(text, surfaces):
    _, starts, ends = tokenize_with_offsets(WordPieceTokenizer(TOKENS), ["。", text])
    spans = zip(starts[1].numpy(), ends[1].numpy(), strict=True)
    assert [text[start:end] for start, end in spans] == surfaces


def test_a_character_belongs_to_its_first_token():
    columns = tokenize_with_offsets(WordPieceTokenizer(TOKENS), ["한a", "", "北한"])
    starts, ends = without_overlap(*columns[1:])
    assert starts.to_list() == [[0, 1, 1, 1], [], [0, 1, 2, 2]]
    assert ends.to_list() == [[1, 1, 1, 2], [], [1, 2, 2, 2]]


def test_chunks_tensors_bytes_and_nothing():
    tokenizer = WordPieceTokenizer(TOKENS)
    texts = ["我 想", "", "京 a b", "吃"]
    whole = [column.to_list() for column in tokenize_with_offsets(tokenizer, texts)]
    for other in (tf.constant(texts), [text.encode() for text in texts]):
        columns = tokenize_with_offsets(tokenizer, other, chunk=3)
        assert [column.to_list() for column in columns] == whole
    assert whole[1:] == [
        [[0, 2], [], [0, 2, 4], [0]],
        [[1, 3], [], [1, 3, 5], [1]],
    ]
    columns = tokenize_with_offsets(tokenizer, [])
    assert [column.to_list() for column in columns] == [[], [], []]
