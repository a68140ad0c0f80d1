import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import unicodedata

import keras
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_tokenizer import IDEOGRAPHS, split_words, tokenize

from albert_tf.tokenizers.word_piece_tokenizer import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "tokenization.json"
ASSETS = os.environ.get("ALBERT_TF_ASSETS")
needs_assets = pytest.mark.skipif(
    not ASSETS, reason="ALBERT_TF_ASSETS does not name the folder of released files"
)

# Characters on which TensorFlow and a Python of 3.10 to 3.13 disagree, for
# they follow different versions of Unicode: tf.strings.lower knows Unicode 13
# and so not these capitals of Unicode 14, and U+1734 was a mark (Mn) up to
# Unicode 13, the version of Python 3.10.
DIFFERING = "\u1734\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8"
# The same beyond the BMP: Vithkuqi capitals, Unicode 14.
VITHKUQI_CAPITALS = range(0x10570, 0x10596)

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
def released():
    return WordPieceTokenizer(f"{ASSETS}/released/vocab/vocab_zh_21128.txt")


def assigned(codes):
    """Characters of `codes` that the running Python knows."""
    characters = (chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    return [
        c for c in characters if unicodedata.category(c) != "Cn" and c not in DIFFERING
    ]


def vocabulary_of(texts, lowercase, rng, share=0.97):
    """Vocabulary of most characters of `texts` and some longer pieces."""
    words = sorted({w for text in texts for w in split_words(text, lowercase)})
    pieces = {c for c in sorted({c for w in words for c in w}) if rng.random() < share}
    for word in words:
        start = rng.randrange(len(word))
        pieces.add(word[start : start + rng.randrange(2, 4)])
    pieces = sorted(pieces)
    return SPECIAL + [prefix + piece for piece in pieces for prefix in ("", "##")]


def differences(texts, tokens, lowercase=True):
    """Texts whose ids are not those of the reference, for a readable failure."""
    tokenizer = WordPieceTokenizer(tokens, lowercase=lowercase)
    ids = {token: i for i, token in enumerate(tokens)}
    actual = tokenizer.tokenize(texts).to_list()
    expected = [[ids[p] for p in tokenize(t, ids, lowercase)] for t in texts]
    return [t for t, a, e in zip(texts, actual, expected, strict=True) if a != e]


def golden_entries():
    if not GOLDEN.exists():
        pytest.skip(f"no {GOLDEN}")
    return json.loads(GOLDEN.read_text(encoding="utf-8"))["zh"]


class TestEqualToOriginal:
    def test_golden_pieces(self):
        # With fewer tokens the greedy cut of the golden entries is the same.
        entries = golden_entries()
        golden_ids = {token: i for i, token in enumerate(SPECIAL)}
        for entry in entries:
            golden_ids.update(zip(entry["tokens"], entry["ids"], strict=True))
        tokens = SPECIAL + sorted(set(golden_ids) - set(SPECIAL))
        tokenizer = WordPieceTokenizer(tokens, dtype="string")
        for entry in entries:
            pieces = [p.decode() for p in tokenizer(entry["text"]).numpy()]
            assert pieces == entry["tokens"], entry["text"]
            assert [golden_ids[p] for p in pieces] == entry["ids"]

    @needs_assets
    def test_golden_ids(self, released):
        entries = golden_entries()
        actual = released([entry["text"] for entry in entries]).to_list()
        assert actual == [entry["ids"] for entry in entries]
        tokens = released.get_vocabulary()
        for ids, entry in zip(actual, entries, strict=True):
            assert [tokens[i] for i in ids] == entry["tokens"]

    @pytest.mark.slow
    def test_reference_on_golden_entries(self):
        for entry in golden_entries():
            assert tokenize(entry["text"], entry["tokens"]) == entry["tokens"]

    @pytest.mark.slow
    @needs_assets
    def test_sentences_with_released_vocabulary(self, released):
        lines = pathlib.Path(ASSETS, "data/lcqmc/dev.tsv").read_text(encoding="utf-8")
        texts = [t for line in lines.splitlines() for t in line.split("\t")[:2]]
        assert not differences(texts, released.get_vocabulary())

    @pytest.mark.parametrize(
        "lowercase, count",
        [
            (True, 500),
            pytest.param(True, 9900, marks=pytest.mark.slow),
            pytest.param(False, 1900, marks=pytest.mark.slow),
        ],
    )
    @pytest.mark.parametrize(
        "alphabet",
        [
            pytest.param("我想吃鸡蛋中文字。，！？、《》 AbC12", id="chinese"),
            pytest.param("aAéÉñÑçÅöÜßẞİıŁłœǅŉﬁ'’.- ", id="latin"),
            pytest.param("ΣσςΑαάΊ\u0301\u00ad’'·:. \t我A1", id="sigma"),
            pytest.param("한국어가각힣ᄒ\u1161\u11ab ab", id="hangul"),
            pytest.param(
                "ab中\0\x01\x02\x0b\x0c\x1f\x7f\x85\xad\u200b\u2028\u2029\u202e\u3000"
                "\ufeff\ufffd\t\n\r \xa0",
                id="control",
            ),
            pytest.param(
                "😀😂👨👩👧\u200d\ufe0f🏽❤⭐中a", id="emoji", marks=pytest.mark.slow
            ),
            pytest.param(
                "aeI中\u0300\u0301\u0323\u0345\u3099か\u0903\u302e", id="marks"
            ),
            pytest.param(
                "ＡＢｚ０９！，．（）ｱﾞab1 ㈠①½", id="width", marks=pytest.mark.slow
            ),
            pytest.param(assigned(range(0x10000)), id="bmp"),
            pytest.param(
                assigned(
                    [
                        *range(0x10330, 0x1034B),  # Gothic
                        *range(0x10400, 0x10450),  # Deseret: with capitals
                        *range(0x1D15E, 0x1D165),  # musical symbols: decompose
                        *range(0x1D400, 0x1D800),  # mathematical letters
                        *range(0x1F600, 0x1F650),  # emoji
                        *range(0x20000, 0x20100),  # ideographs, extension B
                        *range(0x2CEA0, 0x2CEC0),  # the end of E, the start of F
                        *range(0x2F800, 0x2FA1E),  # compatibility ideographs
                        *range(0x30000, 0x30010),  # extension G: not isolated
                        *range(0xE0020, 0xE0080),  # tags: Cf
                    ]
                ),
                id="astral",
            ),
        ],
    )
    def test_random_strings(self, alphabet, lowercase, count):
        rng = random.Random(len(alphabet))
        texts = [
            "".join(rng.choices(alphabet, k=rng.randrange(16))) for _ in range(count)
        ]
        texts += ["".join(rng.choices(alphabet, k=300)) for _ in range(count // 100)]
        tokens = vocabulary_of(texts, lowercase, rng)
        assert not differences(texts, tokens, lowercase)

    @pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("lowercase", [True, False])
    def test_every_character(self, lowercase, step):
        assert len(DIFFERING) <= 10
        codes = [
            *range(0x20010),
            *range(0x2A600, 0x2A800),  # the ends of the ideograph blocks
            *range(0x2B730, 0x2B830),
            *range(0x2CE00, 0x2CF00),
            *range(0x2F800, 0x30010),
            *range(0xE0000, 0xE0200),
        ][::step]
        characters = [c for c in assigned(codes) if ord(c) not in VITHKUQI_CAPITALS]
        texts = [f"a{c}b 中{c}" for c in characters]
        tokens = vocabulary_of(texts, lowercase, random.Random(0), share=1.0)
        assert not differences(texts, tokens, lowercase)

    def test_invalid_bytes_are_dropped(self):
        rng = random.Random(0)
        parts = [bytes([i]) for i in range(256)]
        parts += 64 * [c.encode() for c in "aé中😀Σ"]
        texts = [b"".join(rng.choices(parts, k=rng.randrange(12))) for _ in range(2000)]
        valid = [text.decode("utf-8", errors="ignore") for text in texts]
        tokens = vocabulary_of(valid, True, rng)
        tokenizer = WordPieceTokenizer(tokens)
        assert tokenizer(texts).to_list() == tokenizer(valid).to_list()
        assert not differences(valid, tokens)
        for ours, theirs in zip(
            tokenizer.tokenize_with_offsets(texts),
            tokenizer.tokenize_with_offsets(valid),
            strict=True,
        ):
            assert ours.to_list() == theirs.to_list()

    @pytest.mark.parametrize(
        "letter",
        [
            "a",
            "𝓗",
            "e\u0301",
            *(pytest.param(c, marks=pytest.mark.slow) for c in "жひé１"),
            pytest.param("\u200ba", marks=pytest.mark.slow),
        ],
    )
    def test_word_of_100_characters_is_the_longest(self, letter):
        tokens = SPECIAL + ["中", "."]
        for piece in "aжひ𝓗e１é":
            tokens += [piece, f"##{piece}"]
        texts = [
            f"中{letter * n}{end}"
            for n in (99, 100, 101, 202, 250)
            for end in ("", "中", f".{letter}", f" {letter * 100}", f" {letter * 101}")
        ]
        assert not differences(texts, tokens)
        assert not differences(texts, tokens, lowercase=False)
        lengths = WordPieceTokenizer(tokens)([letter * 100, letter * 101]).row_lengths()
        assert lengths.numpy().tolist() == [100, 1]

    @pytest.mark.slow
    def test_ideographs_are_words_of_their_own_in_long_runs(self):
        edges = [(low - 1, low, high, high + 1) for low, high in IDEOGRAPHS]
        texts = [f"{chr(code) * 150}a" for edge in edges for code in edge]
        tokens = vocabulary_of(texts, True, random.Random(0), share=1.0)
        assert not differences(texts, tokens)
        assert not differences(texts, tokens, lowercase=False)

    @pytest.mark.slow
    def test_length_is_counted_after_cleaning(self):
        # 34 syllables are 102 letters once decomposed; 33 are 99.
        tokens = SPECIAL + ["ᄒ", "##ᄒ", "##ᅡ", "##ᆫ"]
        assert not differences(["한" * 33, "한" * 34, "한" * 34 + " 한"], tokens)

    def test_rows_that_text_never_reaches(self):
        junk = [
            "",
            "##",
            "\u2028",
            "##\u2028",
            "a\u3000b",
            "\x01",
            "##\x01",
            "\x02",
            "a.b",
        ]
        junk += ["\x0b", "\ufeffa", "##.", "中b", "##中", "a" * 101, "##" + "a" * 101]
        rng = random.Random(0)
        alphabet = "ab.中#\u2028\u3000\x01\x0b\ufeff "
        texts = ["".join(rng.choices(alphabet, k=8)) for _ in range(2000)]
        texts += ["a" * 101, "b" + "a" * 101, "a b", "##", "中" + "b" * 101]
        tokens = [*SPECIAL, *junk, "a", "b", "##a", "##b", "中", "."]
        assert not differences(texts, tokens)

    def test_last_of_repeated_tokens_wins(self):
        tokens = [*SPECIAL, "a", "b", "a", "[UNK]"]
        tokenizer = WordPieceTokenizer(tokens)
        assert tokenizer("a b x").numpy().tolist() == [7, 6, 8]
        assert tokenizer.unk_token_id == 8
        assert tokenizer.vocabulary_size() == 9
        assert tokenizer.id_to_token(5) == tokenizer.id_to_token(7) == "a"

    @pytest.mark.slow
    def test_special_tokens_in_text_are_text(self, tokenizer):
        pieces = [tokenizer.id_to_token(i) for i in tokenizer("[MASK][CLS]").numpy()]
        assert pieces == ["[", "mask", "]", "[", "cls", "]"]

    @pytest.mark.slow
    def test_locale_of_the_process_does_not_matter(self, tokenizer):
        script = (
            "from albert_tf.tokenizers.word_piece_tokenizer import *\n"
            f"tokenizer = WordPieceTokenizer({TOKENS!r})\n"
            "print(tokenizer('İ Iıé CAIÉ').numpy().tolist())"
        )
        result = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "LC_ALL": "tr_TR.UTF-8"},
            cwd=pathlib.Path(__file__).parents[2],
            capture_output=True,
            check=True,
            text=True,
        )
        assert json.loads(result.stdout) == tokenizer("İ Iıé CAIÉ").numpy().tolist()


def surfaces(tokenizer, text):
    ids, starts, ends = tokenizer.tokenize_with_offsets(text)
    assert ids.numpy().tolist() == tokenizer.tokenize(text).numpy().tolist()
    triples = zip(ids.numpy(), starts.numpy(), ends.numpy(), strict=True)
    return [
        (tokenizer.id_to_token(i), int(start), int(end)) for i, start, end in triples
    ]


class TestOffsets:
    @pytest.mark.parametrize(
        "text, expected",
        [
            ("我想 吃", [("我", 0, 1), ("想", 1, 2), ("吃", 3, 4)]),
            ("Cafés!", [("cafe", 0, 4), ("##s", 4, 5), ("[UNK]", 5, 6)]),
            # A stripped accent belongs to its letter, in the middle and last.
            ("nai\u0308ve Cafe\u0301", [("naive", 0, 6), ("cafe", 7, 12)]),
            ("\u0301 e\u0301\u0323a", [("e", 2, 5), ("##a", 5, 6)]),
            # Deleted characters inside a piece are in its surface, others not.
            ("he\u200bllo\0world", [("hello", 0, 6), ("##world", 7, 12)]),
            ("\ufeff我\x7f\ufffd想\u200b", [("我", 1, 2), ("想", 4, 5)]),
            (
                "Ａb １２３",
                [("ａ", 0, 1), ("##b", 1, 2), ("１２", 3, 5), ("##３", 5, 6)],
            ),
            (
                "İI aﬁ ẞß",
                [
                    *(("i", 0, 1), ("##i", 1, 2), ("a", 3, 4), ("##ﬁ", 4, 5)),
                    *(("ß", 6, 7), ("##ß", 7, 8)),
                ],
            ),
            ("ΣΑΣ", [("σ", 0, 1), ("##α", 1, 2), ("##ς", 2, 3)]),
            # One character can become several pieces.
            ("한a", [("ᄒ", 0, 1), ("##ᅡ", 0, 1), ("##ᆫ", 0, 1), ("##a", 1, 2)]),
            ("a😀𠮷好", [("a", 0, 1), ("##😀", 1, 2), ("[UNK]", 2, 3), ("好", 3, 4)]),
            ("👨\u200d👩\u200d👧 a", [("[UNK]", 0, 5), ("a", 6, 7)]),
            (
                "好" + "é" * 101 + "a" * 3 + ".a " + "b" * 250 + " c",
                [("好", 0, 1), ("[UNK]", 1, 105), (".", 105, 106), ("a", 106, 107)]
                + [("[UNK]", 108, 358), ("c", 359, 360)],
            ),
        ],
    )
    def test_surfaces(self, tokenizer, text, expected):
        assert surfaces(tokenizer, text) == expected

    def test_cased(self):
        tokenizer = WordPieceTokenizer(SPECIAL + ["Ca", "##f", "##é"], lowercase=False)
        assert surfaces(tokenizer, "\0Ca\u200bfé ca") == [
            ("Ca", 1, 3),
            ("##f", 4, 5),
            ("##é", 5, 6),
            ("[UNK]", 7, 9),
        ]

    texts = st.lists(
        st.text("aAbeEéİΣσςßﬁ한我好，。 .'\u0301\u0323\u00ad\u200b\0Ａ１😀\U0001d15e")
        | st.text(max_size=20)
        | st.text("ab ", min_size=95, max_size=240)
    )

    @settings(deadline=None, max_examples=80)
    @given(texts=texts)
    def test_properties(self, tokenizer, texts):
        ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
        assert ids.to_list() == tokenizer.tokenize(texts).to_list()
        rows = zip(texts, starts.to_list(), ends.to_list(), strict=True)
        for text, start, end in rows:
            assert all(0 <= a < b <= len(text) for a, b in zip(start, end, strict=True))
            assert start == sorted(start)
            assert end == sorted(end)

    @settings(deadline=None, max_examples=60)
    @given(texts=st.lists(st.text("abceio我想好。， .'[]#\t")))
    def test_text_without_normalisation(self, tokenizer, texts):
        ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
        rows = zip(texts, ids.to_list(), starts.to_list(), ends.to_list(), strict=True)
        for text, *columns in rows:
            for i, start, end in zip(*columns, strict=True):
                if i == tokenizer.unk_token_id:
                    continue
                piece = tokenizer.id_to_token(i).removeprefix("##")
                assert text[start:end] == piece

    def test_batch_equals_single_strings_in_the_graph(self, tokenizer):
        texts = [
            "Cafe\u0301 好",
            "",
            "\u0301",
            "a" * 101 + " b",
            " ",
            "\u200b我",
            "한a",
        ]
        function = tf.function(tokenizer.tokenize_with_offsets)
        batch = [ragged.to_list() for ragged in function(tf.constant(texts))]
        for row, text in enumerate(texts):
            single = tokenizer.tokenize_with_offsets(text)
            assert [column[row] for column in batch] == [
                tensor.numpy().tolist() for tensor in single
            ]


class TestPieces:
    def test_strings_instead_of_ids(self):
        pieces = WordPieceTokenizer(TOKENS, dtype="string")(["Cafés x", ""])
        assert pieces.to_list() == [[b"cafe", b"##s", b"[UNK]"], []]


class TestDetokenize:
    @pytest.mark.parametrize(
        "tokens, expected",
        [
            ("[CLS] 我 想 吃 鸡 蛋 。 [SEP] [PAD] [PAD]", "我想吃鸡蛋。"),
            ("hello ##world 中 文 ， cafe ##s", "helloworld 中文， cafes"),
            ("##s 我 [UNK] [MASK] ##s", "s 我 [UNK]s"),
        ],
    )
    def test_text(self, tokenizer, tokens, expected):
        ids = [tokenizer.token_to_id(token) for token in tokens.split()]
        assert tokenizer.detokenize(ids).numpy().decode() == expected
        function = tf.function(tokenizer.detokenize)
        assert function(tf.constant([ids]))[0].numpy().decode() == expected

    def test_batches(self, tokenizer):
        ids = tokenizer(["我 想 吃", "", "Hello , 。"])
        expected = ["我想吃", "", "hello [UNK] 。"]
        for batch in (ids, ids.to_list(), ids.to_tensor(), ids.to_tensor().numpy()):
            texts = [t.decode() for t in tokenizer.detokenize(batch).numpy()]
            assert texts == expected
        assert tokenizer.detokenize([]).numpy() == b""


class TestVocabulary:
    rows = [*SPECIAL, "中", "##文", "a"]

    @pytest.mark.parametrize(
        "text",
        [
            "\n".join(rows),
            "\r\n".join(rows) + "\r\n",
            "\ufeff" + "\n".join(rows) + "\n\n \n\t\r\n",
            "".join(f"{row}\t{i}\n" for i, row in enumerate(rows)),
            "".join(f"{row} -{i}.5 x\r\n" for i, row in enumerate(rows)),
        ],
        ids=["no_end", "crlf", "bom_and_blank_end", "tab", "space"],
    )
    def test_file_forms(self, tmp_path, text):
        path = tmp_path / "vocab.txt"
        path.write_bytes(text.encode("utf-8"))
        tokenizer = WordPieceTokenizer(str(path))
        assert tokenizer.get_vocabulary() == self.rows
        assert tokenizer("中文 a").numpy().tolist() == [5, 1, 7]

    def test_blank_rows_and_unicode_spaces_keep_their_row(self, tmp_path):
        path = tmp_path / "vocab.txt"
        rows = [
            *SPECIAL,
            "",
            " \t",
            "\u2028",
            "\u3000",
            "\x0c",
            "##\u2028",
            "\x85",
            "a",
        ]
        path.write_bytes("\n".join(rows).encode("utf-8"))
        tokenizer = WordPieceTokenizer(path)
        assert tokenizer.get_vocabulary() == [*rows[:6], "", *rows[7:]]
        assert tokenizer("\u2028a\u3000a").numpy().tolist() == [12, 12]

    @needs_assets
    @pytest.mark.parametrize("name", ["vocab_zh_21128.txt", "vocab_chinese_google.txt"])
    def test_released_files(self, name):
        path = f"{ASSETS}/released/vocab/{name}"
        tokenizer = WordPieceTokenizer(path)
        rows = pathlib.Path(path).read_bytes().decode("utf-8").split("\n")[:-1]
        assert tokenizer.vocabulary_size() == len(rows) == 21128
        assert tokenizer.get_vocabulary() == rows
        assert tokenizer.special_token_ids == [0, 100, 101, 102, 103]

    def test_special_tokens_by_name(self):
        tokenizer = WordPieceTokenizer(["a", "[SEP]", "[CLS]", "[UNK]", "[PAD]"])
        assert tokenizer.pad_token_id == 4
        assert tokenizer.unk_token_id == 3
        assert tokenizer.cls_token_id == 2
        assert tokenizer.sep_token_id == 1
        assert tokenizer.mask_token_id is None
        assert tokenizer.special_tokens == ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        assert tokenizer.special_token_ids == [4, 3, 2, 1]

    def test_missing_file(self, tmp_path):
        for path in (tmp_path / "no.txt", tmp_path):
            with pytest.raises(FileNotFoundError, match=f"'{path}' does not exist"):
                WordPieceTokenizer(path)

    def test_no_utf8(self, tmp_path):
        path = tmp_path / "gbk.txt"
        path.write_bytes("[PAD]\n[UNK]\n中文\n".encode("gbk"))
        with pytest.raises(ValueError, match="gbk.txt' is not UTF-8.*0xd6 in line 3"):
            WordPieceTokenizer(path)

    def test_empty_file(self, tmp_path):
        path = tmp_path / "empty.txt"
        path.write_bytes(b"\xef\xbb\xbf\n \r\n")
        with pytest.raises(ValueError, match="empty.txt' lacks .*; it is empty"):
            WordPieceTokenizer(path)

    def test_missing_special_tokens(self, tmp_path):
        path = tmp_path / "words.txt"
        path.write_text("[UNK]\n[SEP]\nthe\n", encoding="utf-8")
        with pytest.raises(
            ValueError, match=r"words.txt' lacks \[PAD\] \[CLS\]; its 3"
        ):
            WordPieceTokenizer(path)
        with pytest.raises(ValueError, match=r"list of tokens lacks \[PAD\]"):
            WordPieceTokenizer(["[UNK]", "[SEP]", "[CLS]"])

    @pytest.mark.parametrize(
        "tokens, message",
        [
            ([*SPECIAL, ""], "ends with an empty token"),
            ([*SPECIAL, "new york"], "Token 5 of the list is 'new york'"),
        ],
    )
    def test_wrong_lists(self, tokens, message):
        with pytest.raises(ValueError, match=message):
            WordPieceTokenizer(tokens)

    def test_no_vocabulary(self):
        tokenizer = WordPieceTokenizer()
        assert tokenizer.cls_token_id is None
        for use in (
            lambda: tokenizer.tokenize(["a"]),
            lambda: tokenizer.tokenize_with_offsets(["a"]),
            lambda: tokenizer.detokenize([1]),
            tokenizer.get_vocabulary,
            tokenizer.vocabulary_size,
            lambda: tokenizer.special_tokens,
        ):
            with pytest.raises(ValueError, match="has no vocabulary yet"):
                use()
        tokenizer.set_vocabulary(self.rows)
        assert tokenizer("a").numpy().tolist() == [7]
        assert tokenizer.cls_token_id == 2


class TestSaving:
    rows = [*SPECIAL, "", "\u2028", "A", "##文", "中"]

    @pytest.fixture
    def original(self, tmp_path):
        path = tmp_path / "vocab.txt"
        path.write_text("\n".join(self.rows), encoding="utf-8", newline="\n")
        return WordPieceTokenizer(path, lowercase=False, dtype="int64", name="zh")

    def check(self, restored):
        assert isinstance(restored, WordPieceTokenizer)
        assert restored.get_vocabulary() == self.rows
        assert restored.lowercase is False
        assert restored.name == "zh"
        ids = restored("A 中")
        assert ids.numpy().tolist() == [7, 9]
        assert ids.dtype == tf.int64

    def test_config_and_assets(self, original, tmp_path):
        config = original.get_config()
        assert str(tmp_path) not in json.dumps(config)
        restored = WordPieceTokenizer.from_config(config)
        assert original.file_assets == ["vocabulary.txt"]
        original.save_assets(tmp_path)
        restored.load_assets(tmp_path)
        self.check(restored)

    @pytest.mark.slow
    def test_serialize(self, original):
        config = keras.saving.serialize_keras_object(original)
        assert config["registered_name"] == "albert_tf>WordPieceTokenizer"
        restored = keras.saving.deserialize_keras_object(config)
        restored.set_vocabulary(original.get_vocabulary())
        self.check(restored)

    def test_preset(self, original, tmp_path):
        preset = str(tmp_path / "preset")
        original.save_to_preset(preset)
        assert os.path.exists(f"{preset}/assets/tokenizer/vocabulary.txt")
        os.remove(tmp_path / "vocab.txt")
        self.check(WordPieceTokenizer.from_preset(preset))
        assert WordPieceTokenizer.from_preset(preset, lowercase=True).lowercase

    @pytest.mark.slow
    def test_preset_of_another_tokenizer(self, original, tmp_path):
        class OtherTokenizer(WordPieceTokenizer):
            pass

        original.save_to_preset(str(tmp_path))
        with pytest.raises(ValueError, match="holds a WordPieceTokenizer. Call"):
            OtherTokenizer.from_preset(tmp_path)

    @pytest.mark.slow
    def test_pickle(self, original):
        self.check(pickle.loads(pickle.dumps(original)))
