"""SentencePiece ids, offsets and models, against ALBERT's rules in plain Python."""

import json
import pathlib
import sys

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_tokenizer import assigned
from sentence_piece_reference import (
    SPACE,
    Reference,
    clean_up,
    train_model,
)

from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf.tokenizers import sentence_piece_graph as in_graph
from albert_tf_lite import sentence_piece as lite

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "tokenization.json"

CHARACTERS = assigned(range(sys.maxunicode + 1))
BMP = [character for character in CHARACTERS if character < "\U00010000"]
# What the clean-up acts on, and what the small model knows.
ODD = "\t\n\x0b\x1c\x1f\x85\xa0\u2003\u2028\u3000\0\x01\xad\u200b\u2581ΣσςİıẞßéÅ"
ODD += (
    "\u0301\u0323\u0345\u0f73¨½ﬁ①⑴㎒🄂🄃한ᄒ\u1161\u11ab가e\u0301😀👨\u200d👩🏽中ａ２，，"
)
PLAIN = 'the on 2018, 5, 12, 1,000 (a) "it\'s" river ahead.?!'


@pytest.fixture(scope="module")
def proto():
    return train_model()


@pytest.fixture(scope="module")
def piece_tokenizer(proto):
    return SentencePieceTokenizer(proto, dtype="string")


@pytest.fixture(scope="module")
def reference(proto):
    return Reference(proto)


@pytest.fixture(scope="module")
def released(assets):
    return assets / "released" / "vocab" / "30k-clean.model"


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))["en_sentencepiece"]


def differences(proto, texts, lowercase=True):
    """The texts whose ids or pieces are not those of the reference."""
    reference = Reference(proto, lowercase)
    ids = SentencePieceTokenizer(proto, lowercase).tokenize(texts).to_list()
    pieces = SentencePieceTokenizer(proto, lowercase, "string")(texts).to_list()
    processor = reference.processor
    different = []
    for text, row_ids, row in zip(texts, ids, pieces, strict=True):
        row = [piece.decode() for piece in row]
        if (
            row != reference.tokens(text)
            or [processor.piece_to_id(piece) for piece in row] != row_ids
        ):
            different.append(text)
    return different


def assert_plain_is_alike(proto, texts, lowercase=True):
    """The tokenizer of exported files has the ids and offsets of the graph."""
    plain = lite.SentencePieceTokenizer(proto, lowercase)
    columns = SentencePieceTokenizer(proto, lowercase).tokenize_with_offsets(texts)
    for text, *row in zip(texts, *(x.to_list() for x in columns), strict=True):
        found = plain.tokenize_with_offsets(text)
        assert plain.tokenize(text) == found[0]
        is_tie = found[0] != row[0] and sorted(found[0]) == sorted(row[0])
        assert is_tie or found == tuple(row), repr(text)


def cleaned(texts, lowercase=True):
    rows = in_graph.clean_up(tf.constant(texts, tf.string), lowercase).numpy()
    return [row.decode() for row in rows]


# === Equal to the original ===


def test_golden_ids_and_pieces(golden, released):
    texts = [entry["text"] for entry in golden]
    ids = SentencePieceTokenizer(released)(texts).to_list()
    assert ids == [entry["ids"] for entry in golden]
    # The reference of the tests below is the original, too.
    reference = Reference(released.read_bytes())
    assert [reference.pieces(text) for text in texts] == [x["tokens"] for x in golden]
    pieces = SentencePieceTokenizer(released, dtype="string")(texts).to_list()
    tokens = [reference.tokens(text) for text in texts]
    assert [[piece.decode() for piece in row] for row in pieces] == tokens


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character(proto, lowercase, step):
    texts = [f"{c}a{c}b {c}A{c} 2018{c}, Σ{c}" for c in CHARACTERS[::step]]
    assert not differences(proto, texts, lowercase)
    # The graph has other offsets for the spaces in these ligatures of several words.
    words = [x for x in texts if x[0] not in "\ufdfa\ufdfb"]
    assert_plain_is_alike(proto, words, lowercase)


@pytest.mark.text_ops
@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.nightly)])
def test_clean_up_in_the_graph(golden, step):
    texts = [entry["text"] for entry in golden]
    assert cleaned(texts) == [entry["preprocessed"] for entry in golden]
    texts = [f"{c}a{c}b {c}A{c} 2018{c}, Σ{c}" for c in CHARACTERS[::step]]
    for lowercase in (True, False):
        assert cleaned(texts, lowercase) == [clean_up(x, lowercase) for x in texts]


# === Commas after digits ===


def test_number_is_the_same_with_and_without_comma(released):
    tokenizer = SentencePieceTokenizer(released)
    comma = tokenizer.token_to_id(",")
    taken_apart = [
        piece
        for piece in tokenizer.get_vocabulary()
        if piece[-1] == "," and piece[-2:-1].isdigit()
    ]
    assert len(taken_apart) == 141
    numbers = [piece[1:-1] for piece in taken_apart]
    alone = tokenizer([f"in {number}" for number in numbers]).to_list()
    columns = tokenizer.tokenize_with_offsets([f"in {n}, so" for n in numbers])
    rows = zip(*(column.to_list() for column in columns), strict=True)
    for number, digits, (ids, starts, ends) in zip(numbers, alone, rows, strict=True):
        end = 3 + len(number)
        assert ids[:-1] == [*digits, comma]
        assert starts == [0, 3, end, end + 2]
        assert ends == [2, end, end + 1, end + 4]


# === Offsets ===


def surfaces(tokenizer, text):
    pieces, starts, ends = tokenizer.tokenize_with_offsets(text)
    triples = zip(pieces.numpy(), starts.numpy(), ends.numpy(), strict=True)
    return [(piece.decode(), text[start:end]) for piece, start, end in triples]


def test_surfaces():
    plain = lite.SentencePieceTokenizer(train_model())
    assert plain.tokenize("a\ud800b \udc00 the") == plain.tokenize("ab the")
    # The pieces of whole words.
    words = ["\u2581the", "\u2581river", "\u258152,", "\u258152"]
    proto = train_model(user_defined_symbols=["(", ")", *words])
    tokenizer = SentencePieceTokenizer(proto, dtype="string")
    for text, expected in (
        ("  The\t river\n", "The|river"),
        ("thE\u0301\u0323 \u0301river", "thE\u0301\u0323|river"),
        ("the\u200b\u200b(\xa0river)", "the||(|river|)"),
        ("\x01the\x02\x03 \x04river\x05", "the|river"),
        ("～ ¨", "|～"),
        ("5\x012\u0301,\x01", "5\x012\u0301|,"),
    ):
        assert "|".join(s for _, s in surfaces(tokenizer, text)) == expected
        assert_plain_is_alike(proto, [text])


ANY_TEXTS = st.lists(
    st.text(st.one_of(st.sampled_from(ODD + PLAIN), st.sampled_from(BMP)))
    | st.text(PLAIN)
)


@settings(deadline=None, max_examples=25)
@given(ANY_TEXTS)
def test_any_strings(proto, piece_tokenizer, reference, texts):
    """Pieces of the original; spans in order, each cleaning up to its piece."""
    assert_plain_is_alike(proto, texts)
    columns = piece_tokenizer.tokenize_with_offsets(texts)
    columns = [x.to_list() for x in columns]
    assert columns[0] == piece_tokenizer.tokenize(texts).to_list()
    for text, pieces, starts, ends in zip(texts, *columns, strict=True):
        pieces = [piece.decode() for piece in pieces]
        assert pieces == reference.tokens(text)
        assert (starts, ends) == (sorted(starts), sorted(ends))
        words = [piece.removeprefix(SPACE) for piece in pieces]
        spans = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        if set(text) <= set(PLAIN):
            assert spans == words and "".join(words) == text.replace(" ", "")
        for word, span, start, end in zip(words, spans, starts, ends, strict=True):
            assert 0 <= start <= end <= len(text) and bool(word) == (start < end)
            # A character such as "½" is more than one piece, and whether a sigma
            # is a final one depends on the next letter.
            surface = reference.processor.normalize(clean_up(span))
            assert word == "<unk>" or word.replace("ς", "σ") in surface.replace(
                "ς", "σ"
            )


# === Model files ===


def test_files_that_are_no_model(tmp_path):
    path = tmp_path / "spiece.model"
    for content in (b"", "<pad>\t0\n▁the\t-3.5\n".encode(), b"\x00\x01\x02\xff"):
        path.write_bytes(content)
        message = "is text, empty or damaged.*use WordPieceTokenizer"
        for source in (path, content):
            with pytest.raises(ValueError, match=message):
                SentencePieceTokenizer(source)
    with pytest.raises(FileNotFoundError):
        SentencePieceTokenizer(tmp_path / "no.model")
    with pytest.raises(ValueError, match=r"given as bytes lacks \[SEP\]; its"):
        SentencePieceTokenizer(train_model(control_symbols=["[CLS]"]))


def test_model_cut_short_anywhere_is_refused(proto):
    # Where a piece ends, it is a model of another vocabulary to SentencePiece.
    end = 0
    while proto[end] == 0x0A:
        end += 2 + proto[end + 1]
    for size in [*range(1, 20), *range(20, len(proto) - 40, 499), end]:
        with pytest.raises(ValueError, match="damaged|cut short|lacks"):
            SentencePieceTokenizer(proto[:size])
