"""WordPiece ids, offsets and vocabularies, against BERT's rules in plain Python.

Each text is also given to the tokenizer of exported files, which has no graph.
"""

import json
import pathlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_tokenizer import IDEOGRAPHS, assigned, tokenize, vocabulary_of

from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf_lite import word_piece as lite
from albert_tf_lite.errors import AlbertError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "tokenization.json"

PIECES = (
    "我 想 吃 鸡 蛋 好 中 文 。 ， ！ ( ) [ ] . ' # a b c e i o ##a ##b ##c ##e ##i "
    "##o hello ##world word ##s cafe ##fe naive ca ß ##ß ﬁ ##ﬁ σ ##σ ##ς α ##α ａ "
    "##ｂ １２ ##３ ᄒ ##ᅡ ##ᆫ ##😀 mask cls"
)
TOKENS = SPECIAL + PIECES.split()


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(TOKENS)


@pytest.fixture(scope="module")
def released(assets):
    return WordPieceTokenizer(assets / "released" / "vocab" / "vocab_zh_21128.txt")


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))["zh"]


# The settings of transformers, by their places in the reference.
SETTINGS = ("strip_accents", "tokenize_chinese_chars", "max_input_chars_per_word")
ORIGINAL = (None, True, 200)


def differences(texts, tokens, lowercase=True, settings=ORIGINAL):
    """Texts with other ids than in the reference, or other offsets without a graph."""
    # Those of the original are the defaults.
    named = dict(zip(SETTINGS, settings, strict=True)) if settings != ORIGINAL else {}
    tokenizer = WordPieceTokenizer(tokens, lowercase=lowercase, **named)
    plain = lite.WordPieceTokenizer(tokens, lowercase, **named)
    ids = {token: i for i, token in enumerate(tokens)}
    actual = tokenizer.tokenize(texts).to_list()
    columns = [x.to_list() for x in tokenizer.tokenize_with_offsets(texts)]
    different = []
    for text, found, *row in zip(texts, actual, *columns, strict=True):
        pieces = tokenize(text, ids, lowercase, *settings)
        expected = [ids[piece] for piece in pieces]
        all_ids = [found, row[0], plain.tokenize(text)]
        spans = plain.tokenize_with_offsets(text)
        if all_ids != [expected] * 3 or spans != tuple(row):
            different.append(text)
    return different


# === Equal to the original ===


def test_golden_pieces(golden):
    # With fewer tokens the greedy cut of the golden entries is the same.
    tokens = SPECIAL + sorted({x for entry in golden for x in entry["tokens"]})
    tokenizer = WordPieceTokenizer(list(dict.fromkeys(tokens)), dtype="string")
    for entry in golden:
        pieces = [x.decode() for x in tokenizer(entry["text"]).numpy()]
        assert pieces == entry["tokens"], entry["text"]
        # The reference of the tests below is the original, too.
        assert tokenize(entry["text"], entry["tokens"]) == entry["tokens"]


def test_golden_ids(golden, released):
    actual = released([entry["text"] for entry in golden]).to_list()
    assert actual == [entry["ids"] for entry in golden]


ALPHABETS = {
    "chinese": "我想吃鸡蛋中文字。，！？、《》 AbC12ＡＢｚ０９（）ｱﾞ㈠①½",
    "latin": "aAéÉñÑçÅöÜßẞİıŁłœǅŉﬁ'’.- ΣσςΑάΊ\u0301\u00ad·",
    "hangul and marks": "한국어가ᄒ\u1161\u11ab aI中\u0323\u0345\u3099か\u0903\u302e",
    "control": "ab中\0\x01\x0b\x1f\x7f\x85\xad\u200b\u2028\u3000\ufeff\ufffd\t\n \xa0",
    "emoji": "😀😂👨👩👧\u200d\ufe0f🏽❤⭐中a",
    "bmp": assigned(range(0x10000)),
    # Capitals, mathematical letters, ideographs, tags (Cf).
    "astral": assigned(
        [
            *range(0x10400, 0x10450),
            *range(0x1D400, 0x1D800),
            *range(0x20000, 0x20100),
            *range(0x2F800, 0x2FA1E),
            *range(0x30000, 0x30010),
            *range(0xE0020, 0xE0080),
        ]
    ),
}


@pytest.mark.parametrize(
    ("lowercase", "settings"),
    [
        (True, ORIGINAL),
        (False, ORIGINAL),
        (True, (False, True, 100)),
        (False, (True, False, 7)),
    ],
)
@pytest.mark.parametrize("count", [300, pytest.param(9900, marks=pytest.mark.nightly)])
def test_random_strings(lowercase, settings, count):
    for name, alphabet in ALPHABETS.items():
        rng = random.Random(len(alphabet))
        lengths = [rng.randrange(16) for _ in range(count)] + [300] * (count // 100)
        texts = ["".join(rng.choices(alphabet, k=length)) for length in lengths]
        tokens = vocabulary_of(texts, lowercase, rng, settings=settings)
        assert not differences(texts, tokens, lowercase, settings), name


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character(lowercase, step):
    codes = [
        *range(0x20010),
        *range(0x2A600, 0x2A800),  # the ends of the ideograph blocks
        *range(0x2B730, 0x2B830),
        *range(0x2CE00, 0x2CF00),
        *range(0x2F800, 0x30010),
        *range(0xE0000, 0xE0200),
    ][::step]
    codes += [x for low, high in IDEOGRAPHS for x in (low - 1, low, high, high + 1)]
    texts = [f"a{c}b 中{c}" for c in assigned(codes)]
    # Each ideograph is one word, also in long runs.
    texts += [f"{chr(low) * 150}a" for low, _ in IDEOGRAPHS]
    tokens = vocabulary_of(texts, lowercase, random.Random(0), share=1.0)
    assert not differences(texts, tokens, lowercase)


# Latin, Cyrillic, hangul and kana, marks that stay and marks that are stripped, emoji.
LETTERS = ("a", "e\u0301", "й", "한", "か\u3099", "ن\u0650", "क\u0940", "😀", "𝓗", "𠀀")


@pytest.mark.parametrize("longest", [100, 200, 300])
def test_the_longest_word_of_each_script(longest):
    """The length is counted in characters, after cleaning."""
    settings = (None, longest == 200, longest)
    texts = [
        f"中{letter * n}{end}"
        for letter in LETTERS
        for n in (longest // 3, longest // 2, longest - 1, longest, longest + 1)
        for end in ("", "中", f".{letter}", f" {letter * longest}")
    ]
    rng = random.Random(0)
    tokens = vocabulary_of(texts, True, rng, share=1.0, settings=settings)
    assert not differences(texts, tokens, True, settings)


def test_added_tokens_are_found_before_the_text_is_cleaned():
    added = {"[E1]": False, "新冠": True, "ÉTÉ": True}
    tokens = [*SPECIAL, *"新冠得[]e1", *added]
    ids = {token: i for i, token in enumerate(tokens)}
    tokenizer = WordPieceTokenizer(tokens, added_tokens=added)
    plain = lite.WordPieceTokenizer(tokens, added_tokens=added)
    for text, expected in {
        "得新冠[E1]": [("得", 0, 1), ("新冠", 1, 3), ("[E1]", 3, 7)],
        # Not in any case; "e1" is no token.
        "[e1]": [("[", 0, 1), ("[UNK]", 1, 3), ("]", 3, 4)],
        " été新 ": [("ÉTÉ", 1, 4), ("新", 4, 5)],
        "": [],
    }.items():
        assert surfaces(tokenizer, text) == expected
        columns = zip(*plain.tokenize_with_offsets(text), strict=True)
        assert list(columns) == [(ids[x], a, b) for x, a, b in expected]
        assert plain.tokenize(text) == [ids[x] for x, _, _ in expected]
    with pytest.raises(AlbertError, match="lacks .'x'. of `added_tokens`"):
        WordPieceTokenizer(tokens, added_tokens={"x": True})
    for value in (0, 1000, "100"):
        with pytest.raises(AlbertError, match="must be an integer from 1 to 999"):
            WordPieceTokenizer(tokens, max_input_chars_per_word=value)


def test_rows_that_text_never_reaches():
    junk = ["", "##", "\u2028", "##\u2028", "a\u3000b", "\x01", "##\x01", "\x02", "a.b"]
    junk += ["\x0b", "\ufeffa", "##.", "中b", "##中", "a" * 201, "##" + "a" * 201]
    rng = random.Random(0)
    alphabet = "ab.中#\u2028\u3000\x01\x0b\ufeff "
    texts = ["".join(rng.choices(alphabet, k=8)) for _ in range(1000)]
    texts += ["a" * 201, "b" + "a" * 201, "a b", "##", "中" + "b" * 201]
    # The last of repeated tokens counts, with a warning.
    with pytest.warns(UserWarning, match="'a'"):
        WordPieceTokenizer([*SPECIAL, *"aab"])
    assert not differences(texts, [*SPECIAL, *junk, *"aab中.b", "##a", "##b"])


# === Offsets ===


def surfaces(tokenizer, text):
    ids, starts, ends = (x.numpy() for x in tokenizer.tokenize_with_offsets(text))
    assert ids.tolist() == tokenizer.tokenize(text).numpy().tolist()
    tokens = map(tokenizer.id_to_token, ids)
    return list(zip(tokens, starts.tolist(), ends.tolist(), strict=True))


SURFACES = {
    "我想 吃": [("我", 0, 1), ("想", 1, 2), ("吃", 3, 4)],
    "Cafés!": [("cafe", 0, 4), ("##s", 4, 5), ("[UNK]", 5, 6)],
    # A stripped accent belongs to its letter, in the middle and last.
    "nai\u0308ve Cafe\u0301": [("naive", 0, 6), ("cafe", 7, 12)],
    "\u0301 e\u0301\u0323a": [("e", 2, 5), ("##a", 5, 6)],
    # Deleted characters inside a piece are in its surface, others not.
    "he\u200bllo\0world": [("hello", 0, 6), ("##world", 7, 12)],
    "\ufeff我\x7f\ufffd想\u200b": [("我", 1, 2), ("想", 4, 5)],
    "İI aﬁ ẞß": [
        ("i", 0, 1),
        ("##i", 1, 2),
        ("a", 3, 4),
        ("##ﬁ", 4, 5),
        ("ß", 6, 7),
        ("##ß", 7, 8),
    ],
    "ΣΑΣ": [("σ", 0, 1), ("##α", 1, 2), ("##ς", 2, 3)],
    # One character can become several pieces.
    "한a": [("ᄒ", 0, 1), ("##ᅡ", 0, 1), ("##ᆫ", 0, 1), ("##a", 1, 2)],
    "👨\u200d👩\u200d👧 a": [("[UNK]", 0, 5), ("a", 6, 7)],
    "好" + "é" * 201 + ".a": [("好", 0, 1), ("[UNK]", 1, 202), (".", 202, 203)]
    + [("a", 203, 204)],
}


def test_surfaces(tokenizer):
    for text, expected in SURFACES.items():
        assert surfaces(tokenizer, text) == expected


ANY_TEXTS = st.lists(
    st.text("aAbeEéİΣσςßﬁ한我好，。 .'\u0301\u0323\u00ad\u200b\0Ａ１😀\U0001d15e")
    | st.text(max_size=20)
    | st.text("ab ", min_size=95, max_size=240)
    | st.text("abceio我想好。， .'[]#\t")
)


@settings(deadline=None, max_examples=50)
@given(texts=ANY_TEXTS)
def test_spans_are_ordered_and_hold_their_pieces(tokenizer, texts):
    ids, *spans = tokenizer.tokenize_with_offsets(texts)
    assert ids.to_list() == tokenizer.tokenize(texts).to_list()
    columns = [x.to_list() for x in (ids, *spans)]
    for text, row, start, end in zip(texts, *columns, strict=True):
        assert all(0 <= a < b <= len(text) for a, b in zip(start, end, strict=True))
        assert (start, end) == (sorted(start), sorted(end))
        for i, a, b in zip(row, start, end, strict=True):
            # Where nothing is lower-cased, stripped or deleted.
            if i != tokenizer.unk_token_id and set(text) <= set("abc我想好。， .'[]#"):
                assert text[a:b] == tokenizer.id_to_token(i).removeprefix("##")


def test_detokenize(tokenizer):
    for tokens, expected in (
        ("[CLS] 我 想 吃 鸡 蛋 。 [SEP] [PAD] [PAD]", "我想吃鸡蛋。"),
        ("hello ##world 中 文 ， cafe ##s", "helloworld 中文， cafes"),
        ("##s 我 [UNK] [MASK] ##s", "s 我 [UNK]s"),
    ):
        ids = [tokenizer.token_to_id(token) for token in tokens.split()]
        assert tokenizer.detokenize(ids).numpy().decode() == expected


def test_lone_surrogates_are_skipped():
    plain = lite.WordPieceTokenizer([*SPECIAL, "ab", "b"])
    found = plain.tokenize_with_offsets("a\ud800b \ud83d b")
    assert found == ([5, 6], [0, 6], [3, 7])


# === Vocabulary files ===


ROWS = [*SPECIAL, "中", "##文", "a"]
FORMS = {
    "no end": "\n".join(ROWS),
    "CRLF": "\r\n".join(ROWS) + "\r\n",
    "BOM and blank end": "\ufeff" + "\n".join(ROWS) + "\n\n \n\t\r\n",
    "space and score": "".join(f"{row} -{i}.5 x\r\n" for i, row in enumerate(ROWS)),
}


def test_forms_of_files(tmp_path):
    path = tmp_path / "vocab.txt"
    for name, text in FORMS.items():
        path.write_bytes(text.encode("utf-8"))
        tokenizer = WordPieceTokenizer(str(path))
        assert tokenizer.get_vocabulary() == ROWS, name
        assert tokenizer("中文 a").numpy().tolist() == [5, 1, 7]


def test_blank_rows_and_unicode_spaces_keep_their_row(tmp_path):
    path = tmp_path / "vocab.txt"
    rows = [*SPECIAL, "", " \t", "\u2028", "\u3000", "\x0c", "##\u2028", "\x85", "a"]
    path.write_bytes("\n".join(rows).encode("utf-8"))
    tokenizer = WordPieceTokenizer(path)
    assert tokenizer.get_vocabulary() == [*rows[:6], "", *rows[7:]]
    assert tokenizer("\u2028a\u3000a").numpy().tolist() == [12, 12]


def test_wrong_vocabularies(tmp_path):
    path = tmp_path / "vocab.txt"
    for content, message in (
        ("[PAD]\n[UNK]\n中文\n".encode("gbk"), "vocab.txt' is not UTF-8.* in line 3"),
        (b"[UNK]\n[SEP]\nthe\n", r"vocab.txt' lacks \[PAD\] \[CLS\]; its 3"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            WordPieceTokenizer(path)
    with pytest.raises(FileNotFoundError):
        WordPieceTokenizer(tmp_path / "no.txt")
