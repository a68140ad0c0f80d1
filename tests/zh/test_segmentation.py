"""Words of Chinese text, and the sizes of the Chinese releases."""

import importlib.util
import itertools
import json
import logging
import pathlib
import pickle
import sys

import jieba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zh
from albert_tf.preprocessing.words import word_boundaries

TEXTS = [
    "我想吃鸡蛋",
    "",
    " 他来到了网易杭研大厦\n",
    "iPhone 15，真香😀！！",
    "１２３ＡＢＣ、全角　空格",
]

needs_rjieba = pytest.mark.skipif(
    importlib.util.find_spec("rjieba") is None, reason="rjieba is not installed"
)


@settings(max_examples=100)
@given(st.lists(st.text(max_size=30), max_size=3))
def test_words_joined_give_the_text(texts):
    assert ["".join(words) for words in zh.segment(texts)] == texts


def test_any_iterable_of_strings_is_segmented_by_any_function():
    expected = [jieba.lcut(text) for text in TEXTS]
    for texts in (TEXTS, np.array(TEXTS), iter(TEXTS)):
        assert zh.segment(texts) == expected
    assert zh.segment([]) == []
    assert zh.segment(["好吃吗", ""], segmenter=list) == [["好", "吃", "吗"], []]
    assert zh.segment(["好吃吗"], segmenter=jieba.cut) == [jieba.lcut("好吃吗")]


def test_a_segmenter_that_changes_the_text_is_refused():
    message = "segmenter changed the text: 'ab 好 ' became 'ab好'"
    with pytest.raises(ValueError, match=message):
        zh.segment(["ab 好 "], segmenter=str.split)
    with pytest.raises(TypeError, match=r"should return strings.*\[\('ab"):
        zh.segment(["ab 好 "], segmenter=lambda text: [(text, "a")])
    with pytest.raises(TypeError, match="list of strings, not one string"):
        zh.segment("我想吃鸡蛋")


# Texts that rjieba alone would cut differently: numbers, symbols, characters outside
# jieba's dictionary, white space, surrogates.
ODD = [
    *("一上a", "了的不", "龘靐", "约30-140厘米"),
    *("AT&T公司", "c++", "T恤衫", "江南style", "㐀好", "\u9fd6好", "𠀀𠀁", "豈更"),
    *("é한あ٣", "a\rb\n", "\u2028\u3000", " \t\x0b\x85\xa0", "\u200b\ufeff\x00"),
    *("\ud800好", "😀👨\u200d👩", "——……", "小明硕士毕业于中国科学院计算所"),
    *("踽踽踽以揗兵籖壥", "哈哈哈" + "丄a" * 40, "的" * 300, "abc" * 100),
]
ANY_TEXT = st.lists(
    st.one_of(
        st.sampled_from(ODD),
        st.text("的一是了我不人在他有这个上们来到时大地为子中你说生常较", max_size=8),
        st.text("aZ09+#&._%-，。！？\n\r\t　", max_size=5),
        st.text(max_size=4),
    ),
    max_size=8,
).map("".join)


def check_words(segmenter, text):
    words = jieba.lcut(text, HMM=segmenter.hmm)
    expected = {0, *itertools.accumulate(map(len, words))} - {len(text)}
    expected |= {at for at, character in enumerate(text) if character == "\n"}
    boundaries = segmenter.boundaries(text)
    assert boundaries.dtype == np.int64
    assert boundaries.tolist() == sorted(expected)
    if "\r\n" not in text:
        assert segmenter(text) == words


@pytest.mark.parametrize(
    ("fast", "hmm"),
    [
        (True, False),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(False, False, marks=pytest.mark.slow),
    ],
)
@settings(max_examples=50)
@given(text=ANY_TEXT)
def test_any_text_is_cut_as_jieba_cuts_it(fast, hmm, text):
    check_words(zh.Jieba(hmm=hmm, fast=fast), text)


@needs_rjieba
def test_rjieba_with_hmm_cuts_texts_as_jieba_does():
    reviews = pathlib.Path(__file__).parents[2] / "examples" / "reviews" / "test.tsv"
    for text in (*ODD, reviews.read_text("utf-8")):
        check_words(zh.Jieba(), text)


def test_a_long_text_is_cut_as_its_lines():
    line = "他来到了网易杭研大厦。"
    text = "\n".join([line] * 20_000)
    starts = np.cumsum([0, *map(len, [*jieba.lcut(line), "\n"])])
    found = zh.Jieba().boundaries(text)
    rows = np.arange(text.count("\n") + 1)[:, None] * starts[-1] + starts[:-1]
    np.testing.assert_array_equal(found, rows.ravel()[: len(found)])
    assert len(found) == rows.size - 1


@pytest.mark.parametrize("fast", [True, False])
def test_jieba_is_pickled_without_its_dictionary(fast):
    segmenter = zh.Jieba(hmm=False, fast=fast)
    segmenter("好")
    pickled = pickle.dumps(segmenter)
    assert len(pickled) < 1000
    copy = pickle.loads(pickled)
    assert (copy.hmm, copy.fast) == (False, fast)
    assert zh.segment(TEXTS, copy) == zh.segment(TEXTS, segmenter)


def test_repr_names_the_words_and_not_the_engine():
    """A run of `pretrain-data` recognises its settings by the repr."""
    assert repr(zh.Jieba()) == repr(zh.Jieba(fast=False)) == "Jieba(hmm=True)"
    one, same, other = (
        repr(zh.Jieba(user_dictionary=[word])) for word in ("一", "一", "二")
    )
    assert one == same != other
    assert repr(zh.Whitespace()) == "Whitespace()"


def test_jieba_says_nothing_and_leaves_its_logger(caplog):
    jieba.setLogLevel("DEBUG")
    zh.Jieba(fast=False)("好")
    assert not caplog.records
    assert jieba.default_logger.level == logging.DEBUG


def test_without_rjieba_jieba_cuts(monkeypatch):
    pickled = pickle.dumps(zh.Jieba())
    monkeypatch.setitem(sys.modules, "rjieba", None)
    assert pickle.loads(pickled)("我想吃鸡蛋") == ["我", "想", "吃", "鸡蛋"]


DICTIONARY = (
    "\ufeff云计算 5\n李小福 2 nr\n\n创新办 3 i\r\neasy_install 3 eng\n台中\n石墨烯\n"
)
USER_TEXTS = [
    "李小福是创新办主任也是云计算方面的专家",
    "台中easy_install石墨烯",
    "网易",
]


def test_a_user_dictionary_is_that_of_jieba(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(DICTIONARY, encoding="utf-8", newline="")
    expected = jieba.Tokenizer()
    expected.load_userdict(str(path))
    words = [expected.lcut(text) for text in USER_TEXTS]
    assert words != zh.segment(USER_TEXTS)
    segmenter = zh.Jieba(user_dictionary=path)
    path.unlink()
    copy = pickle.loads(pickle.dumps(segmenter))
    assert zh.segment(USER_TEXTS, copy) == words
    lines = [line.strip() for line in DICTIONARY.split("\n") if line]
    assert zh.segment(USER_TEXTS, zh.Jieba(user_dictionary=lines)) == words


def test_a_malformed_user_dictionary_is_refused(tmp_path):
    path = tmp_path / "words.txt"
    for content, message in (
        ("好\n云计算 5 n".encode("gb18030"), "words.txt is not UTF-8: .* 0xba.*iconv"),
        ("好\n云计算\t5\n".encode(), r"a tab in line 2: '云计算\\t5'.*frequency"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            zh.Jieba(user_dictionary=path)
    for missing in (tmp_path / "no.txt", str(tmp_path), "吃鸡蛋"):
        with pytest.raises(FileNotFoundError, match="There is no user dictionary"):
            zh.Jieba(user_dictionary=missing)


def test_white_space_separates_words():
    segmenter = pickle.loads(pickle.dumps(zh.Whitespace()))
    for text, words in (
        ("", []),
        ("我 想  吃鸡蛋", ["我", " ", "想", "  ", "吃鸡蛋"]),
        (" 我\t 想\u3000", [" ", "我", "\t ", "想", "\u3000"]),
        ("我 \n\n 想\r\n", ["我", " ", "\n", "\n", " ", "想", "\r", "\n"]),
        ("\x1c𠀀\u200b\x85", ["\x1c", "𠀀\u200b", "\x85"]),
    ):
        assert zh.segment([text], segmenter) == [words]
        starts = segmenter.boundaries(text)
        assert starts.dtype == np.int64
        ends = itertools.accumulate(map(len, words), initial=0)
        assert starts.tolist() == [*ends][:-1]


@settings(max_examples=100)
@given(st.text(st.sampled_from("好a \n\t\u3000\xa0\u200b\x1f"), max_size=20))
def test_words_are_what_str_split_returns(text):
    words = zh.Whitespace()(text)
    assert "".join(words) == text
    assert [word for word in words if not word.isspace()] == text.split()


def test_boundaries_of_any_segmenter():
    text = "好吃吗\n\n好 吃\r\n"
    for segmenter in (zh.Jieba(), zh.Jieba(fast=False), jieba.lcut, jieba.cut):
        boundaries = word_boundaries(text, segmenter)
        assert boundaries.dtype == np.int64
        assert boundaries.tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    found = word_boundaries(text, zh.Whitespace())
    assert found.tolist() == [0, 3, 4, 5, 6, 7, 8, 9]
    assert word_boundaries("a\nb", lambda line: ["", line, ""]).tolist() == [0, 1, 2]
    for segmenter in (zh.Jieba(), zh.Whitespace(), list):
        assert word_boundaries("", segmenter).tolist() == []
        assert word_boundaries("\n", segmenter).tolist() == [0]
    with pytest.raises(ValueError, match="changed line 3: 'a b' became 'ab'"):
        word_boundaries("a\n\na b\n", str.split)


CONFIGS = {
    "albert_tiny_zh": [
        "configs/albert_config_tiny.json",
        "albert_tiny_zh_a/albert_config_tiny.json",
        "albert_tiny_zh_b/albert_config_tiny.json",
    ],
    "albert_base_zh": ["configs/albert_config_base.json"],
    "albert_large_zh": [
        "configs/albert_config_large.json",
        "albert_large_zh/albert_config_large.json",
    ],
    "albert_xlarge_zh": ["configs/albert_config_xlarge.json"],
    "albert_xxlarge_zh": ["configs/albert_config_xxlarge.json"],
    # The config in the archive albert_tiny_zh_google itself says one layer.
    "albert_tiny_zh_google": ["configs/albert_config_tiny_google.json"],
    "albert_small_zh_google": [
        "configs/albert_config_small_google.json",
        "albert_small_zh_google/albert_config.json",
    ],
    "albert_base_zh_google": ["albert_base_zh_google/albert_config.json"],
}
ACTIVATIONS = {"gelu": "gelu_approximate", "relu": "relu"}


def test_sizes_are_those_of_the_released_configs(assets):
    # This project trained the other one.
    assert set(zh.SIZES) - {"albert_micro_zh"} == set(CONFIGS)
    for name, path in [(x, path) for x, paths in CONFIGS.items() for path in paths]:
        size = zh.SIZES[name]
        config = json.loads((assets / "released" / path).read_text())
        assert {
            "num_layers": config["num_hidden_layers"],
            "hidden_dim": config["hidden_size"],
            "num_heads": config["num_attention_heads"],
            "intermediate_dim": config["intermediate_size"],
            "embedding_dim": config["embedding_size"],
            "vocabulary_size": config["vocab_size"],
        }.items() <= size.items()
        activation = size.get("activation", "gelu_approximate")
        assert activation == ACTIVATIONS[config["hidden_act"]]
        assert size.get("normalize_first", False) == (config.get("ln_type") == "preln")
        projection = size.get("embedding_projection", "before_layer_norm")
        assert (projection == "after_layer_norm") == name.endswith("_google")
        assert config["max_position_embeddings"] == 512
        assert config["type_vocab_size"] == 2
