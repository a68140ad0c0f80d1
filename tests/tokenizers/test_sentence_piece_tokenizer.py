"""Ids and offsets of English text, against the original's rules in plain Python."""

import json
import os
import pathlib
import random
import subprocess
import sys
import unicodedata

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_piece_reference import (
    SPACE,
    TEXT,
    Reference,
    clean_up,
    equal_but_for_ties,
    train_model,
)

from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf.tokenizers import sentence_piece_clean_up as in_graph

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "tokenization.json"

# Characters on which TensorFlow and a Python of 3.10 to 3.13 disagree, for they
# follow different versions of Unicode: tf.strings.lower knows Unicode 13 and so not
# these capitals of Unicode 14, and the last are letters of Unicode 15.
DIFFERING = {
    *(0x2C2F, 0xA7C0, 0xA7D0, 0xA7D6, 0xA7D8),
    *range(0x10570, 0x10596),
    *range(0x1E030, 0x1E06E),
}
CHARACTERS = [
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    and code not in DIFFERING
]
BMP = [character for character in CHARACTERS if character < "\U00010000"]
ASTRAL = [character for character in CHARACTERS if character > "\uffff"]
# A sample of the characters, or all.
SLOW = pytest.mark.slow
STEPS = [97, pytest.param(1, marks=SLOW)]
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
def tokenizer(proto):
    return SentencePieceTokenizer(proto)


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
            not equal_but_for_ties(row, reference.pieces(text))
            or [processor.piece_to_id(piece) for piece in row] != row_ids
        ):
            different.append(text)
    return different


def cleaned(texts, lowercase=True):
    rows = in_graph.clean_up(tf.constant(texts, tf.string), lowercase).numpy()
    return [row.decode() for row in rows]


class TestEqualToOriginal:
    def test_golden_clean_up(self, golden):
        texts = [entry["text"] for entry in golden]
        assert cleaned(texts) == [entry["preprocessed"] for entry in golden]
        assert [clean_up(text) for text in texts] == cleaned(texts)

    def test_golden_ids_and_pieces(self, golden, released):
        texts = [entry["text"] for entry in golden]
        ids = SentencePieceTokenizer(released)(texts).to_list()
        assert ids == [entry["ids"] for entry in golden]
        pieces = SentencePieceTokenizer(released, dtype="string")(texts).to_list()
        assert [[piece.decode() for piece in row] for row in pieces] == [
            entry["tokens"] for entry in golden
        ]

    def test_reference_on_golden_entries(self, golden, released):
        reference = Reference(released.read_bytes())
        for entry in golden:
            assert reference.pieces(entry["text"]) == entry["tokens"]
            assert reference.ids(entry["text"]) == entry["ids"]

    def test_text_with_the_released_model(self, released):
        texts = [*TEXT.splitlines(), *TEXT.split(), TEXT, clean_up.__doc__ or ""]
        texts += [f"{year}, {year}," for year in range(1900, 2030)]
        assert not differences(released.read_bytes(), texts)

    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.parametrize("lowercase", [True, False])
    def test_every_character(self, proto, lowercase, step):
        texts = [f"{c}a{c}b {c}A{c} 2018{c}, {c}" for c in CHARACTERS[::step]]
        assert not differences(proto, texts, lowercase)

    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.parametrize("lowercase", [True, False])
    def test_every_character_cleans_up(self, lowercase, step):
        texts = [f"{c}a{c} {c}{c} Σ{c} b{c}" for c in CHARACTERS[::step]]
        expected = [clean_up(text, lowercase) for text in texts]
        assert cleaned(texts, lowercase) == expected

    @pytest.mark.parametrize("alphabet", [ODD + PLAIN, PLAIN, BMP, ASTRAL])
    @pytest.mark.parametrize(
        "lowercase, count",
        [(True, 300), *(pytest.param(x, 3000, marks=SLOW) for x in (True, False))],
    )
    def test_random_strings(self, proto, alphabet, lowercase, count):
        rng = random.Random(len(alphabet))
        texts = [
            "".join(rng.choices(alphabet, k=rng.randrange(20))) for _ in range(count)
        ]
        texts += ["".join(rng.choices(alphabet, k=500)) for _ in range(count // 100)]
        assert cleaned(texts, lowercase) == [clean_up(t, lowercase) for t in texts]
        assert not differences(proto, texts, lowercase)

    @settings(deadline=None, max_examples=60)
    @given(
        st.lists(st.text(st.one_of(st.sampled_from(ODD + PLAIN), st.sampled_from(BMP))))
    )
    def test_any_strings(self, piece_tokenizer, reference, texts):
        actual = piece_tokenizer.tokenize(texts).to_list()
        for text, pieces in zip(texts, actual, strict=True):
            pieces = [piece.decode() for piece in pieces]
            assert equal_but_for_ties(pieces, reference.pieces(text))

    def test_invalid_bytes_are_dropped(self, tokenizer, proto):
        rng = random.Random(0)
        parts = [bytes([i]) for i in range(256)]
        parts += 64 * [c.encode() for c in "aé中😀Σ ,5"]
        texts = [b"".join(rng.choices(parts, k=rng.randrange(12))) for _ in range(1000)]
        valid = [text.decode("utf-8", errors="ignore") for text in texts]
        assert tokenizer(texts).to_list() == tokenizer(valid).to_list()
        assert not differences(proto, valid)
        for ours, theirs in zip(
            tokenizer.tokenize_with_offsets(texts),
            tokenizer.tokenize_with_offsets(valid),
            strict=True,
        ):
            assert ours.to_list() == theirs.to_list()

    def test_names_of_special_tokens_are_text(self, tokenizer):
        ids = tokenizer("[CLS] <pad> [SEP] [MASK] <unk>").numpy()
        assert not set(ids) & {0, 2, 3, 4}

    @pytest.mark.slow
    def test_locale_of_the_process_does_not_matter(self, proto, tmp_path):
        (tmp_path / "a.model").write_bytes(proto)
        text = "İ Iıé THE RIVER"
        script = (
            "from albert_tf.tokenizers import SentencePieceTokenizer\n"
            f"tokenizer = SentencePieceTokenizer({str(tmp_path / 'a.model')!r})\n"
            f"print(tokenizer({text!r}).numpy().tolist())"
        )
        result = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "LC_ALL": "tr_TR.UTF-8"},
            cwd=pathlib.Path(__file__).parents[2],
            capture_output=True,
            check=True,
            text=True,
        )
        assert json.loads(result.stdout) == Reference(proto).ids(text)


class TestCommasAfterDigits:
    def test_small_model_has_such_pieces(self, tokenizer):
        pieces = [p for p in tokenizer.get_vocabulary() if p[-1] == "," and len(p) > 1]
        assert any(piece[-2].isdigit() for piece in pieces)

    def test_number_is_the_same_with_and_without_comma(self, released):
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
        for number, digits, (ids, starts, ends) in zip(
            numbers, alone, rows, strict=True
        ):
            end = 3 + len(number)
            assert ids[:-1] == [*digits, comma]
            assert starts == [0, 3, end, end + 2]
            assert ends == [2, end, end + 1, end + 4]

    def test_digits_inside_a_word_get_a_space_piece(self):
        # As the original's code does, not as it means to. The released model has
        # no such piece.
        proto = train_model(user_defined_symbols=["12,", "34,"])
        text = "a12, b34,\u0301 34,c"
        tokenizer = SentencePieceTokenizer(proto, dtype="string")
        pieces, starts, ends = tokenizer.tokenize_with_offsets(text)
        pieces = [piece.decode() for piece in pieces.numpy()]
        assert equal_but_for_ties(pieces, Reference(proto).pieces(text))
        assert pieces[1].startswith(SPACE)
        spans = zip(starts.numpy(), ends.numpy(), strict=True)
        assert [clean_up(text[start:end]) for start, end in spans] == [
            piece.removeprefix(SPACE) for piece in pieces
        ]


def surfaces(tokenizer, text):
    pieces, starts, ends = tokenizer.tokenize_with_offsets(text)
    triples = zip(pieces.numpy(), starts.numpy(), ends.numpy(), strict=True)
    return [(piece.decode(), text[start:end]) for piece, start, end in triples]


class TestOffsets:
    def test_golden_entries(self, golden, released):
        tokenizer = SentencePieceTokenizer(released, dtype="string")
        for entry in golden:
            spans = surfaces(tokenizer, entry["text"])
            assert [piece for piece, _ in spans] == entry["tokens"]
            for piece, surface in spans:
                word = piece.removeprefix(SPACE)
                # "½" is three pieces.
                assert clean_up(surface) == (word if surface != "½" else "1\u20442")

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("  The\t river\n", "The|river"),
            ("thE\u0301\u0323 \u0301river", "thE\u0301\u0323|river"),
            ("the\u200b\u200b(\xa0river)", "the||(|river|)"),
            ("\x01the\x02\x03 \x04river\x05", "the|river"),
            ("～ ¨", "|～"),
            ("5\x012\u0301,\x01", "5\x012\u0301|,"),
        ],
    )
    def test_spans(self, text, expected):
        # The pieces of whole words.
        words = ["\u2581the", "\u2581river", "\u258152,", "\u258152"]
        proto = train_model(user_defined_symbols=["(", ")", *words])
        tokenizer = SentencePieceTokenizer(proto, dtype="string")
        assert "|".join(s for _, s in surfaces(tokenizer, text)) == expected

    def check(self, processor, text, pieces, starts, ends):
        """Spans in order, within the text, each cleaning up to its piece."""
        assert starts == sorted(starts)
        assert ends == sorted(ends)
        assert all(0 <= a <= b <= len(text) for a, b in zip(starts, ends, strict=True))
        for piece, start, end in zip(pieces, starts, ends, strict=True):
            word = piece.decode().removeprefix(SPACE)
            assert bool(word) == (start < end)
            surface = processor.normalize(clean_up(text[start:end]))
            # A character such as "½" is more than one piece, and whether a sigma
            # is a final one depends on the next letter.
            assert word.replace("ς", "σ") in surface.replace("ς", "σ")

    @settings(deadline=None, max_examples=60)
    @given(
        st.lists(st.text(st.one_of(st.sampled_from(ODD + PLAIN), st.sampled_from(BMP))))
    )
    def test_any_strings(self, piece_tokenizer, reference, texts):
        pieces, starts, ends = piece_tokenizer.tokenize_with_offsets(texts)
        assert pieces.to_list() == piece_tokenizer.tokenize(texts).to_list()
        rows = zip(pieces.to_list(), starts.to_list(), ends.to_list(), strict=True)
        for text, row in zip(texts, rows, strict=True):
            self.check(reference.processor, text, *row)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.text(PLAIN)))
    def test_plain_text_is_covered(self, piece_tokenizer, texts):
        pieces, starts, ends = piece_tokenizer.tokenize_with_offsets(texts)
        rows = zip(pieces.to_list(), starts.to_list(), ends.to_list(), strict=True)
        for text, (row, *spans) in zip(texts, rows, strict=True):
            surfaces = [text[start:end] for start, end in zip(*spans, strict=True)]
            assert surfaces == [piece.decode().removeprefix(SPACE) for piece in row]
            assert "".join(surfaces) == text.replace(" ", "")

    def test_batch_equals_single_strings_in_the_graph(self, tokenizer):
        texts = ["cafe\u0301 on", "", "\u0301", " ", "\u200bthe", "한a 5, ", "\0", "(("]
        function = tf.function(tokenizer.tokenize_with_offsets)
        batch = [ragged.to_list() for ragged in function(tf.constant(texts))]
        for row, text in enumerate(texts):
            single = tokenizer.tokenize_with_offsets(text)
            assert [column[row] for column in batch] == [
                tensor.numpy().tolist() for tensor in single
            ]
