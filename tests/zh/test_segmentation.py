"""Words of Chinese text, and the sizes of the Chinese releases."""

import importlib.util
import itertools
import json
import logging
import pickle
import sys
import types

import jieba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import albert_tf
import zh
from albert_tf.preprocessing.words import word_boundaries
from zh.segmentation import PIECE

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


@pytest.fixture(scope="module")
def tokenizer():
    return jieba.dt


@pytest.fixture(params=[False, pytest.param(True, marks=needs_rjieba)], scope="module")
def engines(request):
    """Two segmenters, by whether they have the HMM: of jieba, then of rjieba."""
    return {hmm: zh.Jieba(hmm=hmm, fast=request.param) for hmm in (True, False)}


def test_words_are_those_of_jieba():
    assert zh.segment(TEXTS) == [jieba.lcut(text) for text in TEXTS]
    assert zh.segment(["我想吃鸡蛋"]) == [["我", "想", "吃", "鸡蛋"]]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=3))
def test_words_joined_give_the_text(texts):
    assert ["".join(words) for words in zh.segment(texts)] == texts


def test_any_iterable_of_strings_is_segmented_by_any_function():
    for texts in (tuple(TEXTS), np.array(TEXTS), iter(TEXTS)):
        assert zh.segment(texts) == zh.segment(TEXTS)
    assert zh.segment([]) == []
    assert zh.segment(["", ""]) == [[], []]
    assert zh.segment(["好吃吗", ""], segmenter=list) == [["好", "吃", "吗"], []]
    assert zh.segment(["好吃吗"], segmenter=jieba.cut) == [jieba.lcut("好吃吗")]


def test_segmenter_that_changes_the_text_is_refused():
    message = "segmenter changed the text: 'ab 好 ' became 'ab好'"
    with pytest.raises(ValueError, match=message):
        zh.segment(["ab 好 "], segmenter=str.split)
    with pytest.raises(TypeError, match=r"should return strings.*\[\('ab"):
        zh.segment(["ab 好 "], segmenter=lambda text: [(text, "a")])
    with pytest.raises(ValueError, match="'好{20} 坏' became '好{20}坏'"):
        zh.segment(["好" * 1000 + " 坏"], segmenter=str.split)
    with pytest.raises(TypeError, match="list of strings, not one string"):
        zh.segment("我想吃鸡蛋")


# What jieba cuts otherwise than rjieba, or than one would think: dictionary words
# that it takes apart, numbers and symbols, dictionary words with symbols, characters
# next to those of its dictionary, white space, what is no character at all, and
# words that may as well be cut otherwise.
ODD = [
    *("常在较陡峭的礁岸", "常在路下伤人", "一上", "一上a", "a一七.5", "了的不", "龘靐"),
    *("1-0", "GT-R", "约30-140厘米", "3.14%a", "1.2.3", "50%5", "a_b", "--", "v2.0版"),
    *("AT&T公司", "c++", "C#的", "T恤衫", "4S店", "阿Q正传", "江南style", "+86"),
    *("㐀好", "常在\u9fd5较", "\u9fd6好", "\u9fff", "𠀀𠀁", "豈更", "γ射线", "１２Ａ"),
    *("é한あ٣", "\r", "a\rb\n", "\u2028\u3000"),
    " \t\x0b\x0c\x1c\x1f\x85\xa0",
    *("\u200b\ufeff\x00\x7f", "\ud800好", "\udfff", "😀👨\u200d👩", "²½", "——……"),
    *("我们中出了一个叛徒", "小明硕士毕业于中国科学院计算所", "臺灣繁體中文"),
    *("一一一X了Tc上83.14上TU.S.", "跌跌跌一随被通荗T与拉日-于.11煣于1.郬"),
    *("踽踽踽以揗兵籖壥", "哈哈哈" + "丄a" * 40, "卢沟水泥砖" + "的" * 40),
    *("的" * 300, "好。" * 100, "abc" * 100),
]


def test_odd_texts_are_cut_as_jieba_cuts_them(engines, tokenizer):
    for hmm, segmenter in engines.items():
        words = [tokenizer.lcut(text, HMM=hmm) for text in ODD]
        assert segmenter.segment(ODD) == words
        assert [segmenter(text) for text in ODD] == words


TEXTS_OF_ALL_KINDS = st.lists(
    st.one_of(
        st.sampled_from(ODD),
        st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5), max_size=5),
        st.text("的一是了我不人在他有这个上们来到时大地为子中你说生常较", max_size=8),
        st.text("臺灣國語這裡說話與對後來開發電腦", max_size=8),
        st.text("aZ09+#&._%-", max_size=5),
        st.text("，。！？“”（）\n\r\t 　１Ａé\xa0\u200b", max_size=4),
        st.text(max_size=4),
    ),
    max_size=8,
).map("".join)


@settings(max_examples=100, deadline=None)
@given(text=TEXTS_OF_ALL_KINDS)
def test_any_text_is_cut_as_jieba_cuts_it(engines, tokenizer, text):
    for hmm, segmenter in engines.items():
        words = tokenizer.lcut(text, HMM=hmm)
        expected = {0, *itertools.accumulate(map(len, words))} - {len(text)}
        expected |= {at for at, character in enumerate(text) if character == "\n"}
        boundaries = segmenter.boundaries(text)
        assert boundaries.dtype == np.int64
        assert boundaries.tolist() == sorted(expected)
        if "\r\n" not in text:
            assert segmenter(text) == words


@needs_rjieba
@pytest.mark.parametrize(
    "most", [20_000, pytest.param(300_000, marks=pytest.mark.slow)]
)
def test_corpus_is_cut_as_jieba_cuts_it(assets, tokenizer, most):
    fast = zh.Jieba()
    for path in sorted((assets / "data" / "corpus").glob("*.txt")):
        text = path.read_text(encoding="utf-8")[:most]
        ends = np.cumsum([len(word) for word in tokenizer.cut(text)])
        starts = np.append(0, ends[:-1])
        np.testing.assert_array_equal(fast.boundaries(text), starts, path.name)


def test_long_text_is_cut_as_its_lines(engines):
    lines = [f"第{number}行：他来到了网易杭研大厦。" for number in range(20_000)]
    text = "\n".join(lines)
    assert len(text) > 2 * PIECE
    for segmenter in engines.values():
        words = [word for found in segmenter.segment(lines) for word in [*found, "\n"]]
        starts = np.cumsum([0, *map(len, words[:-2])])
        np.testing.assert_array_equal(segmenter.boundaries(text), starts)


@pytest.mark.slow
@needs_rjieba
def test_long_line_takes_linear_time():
    text = "他来到了网易杭研大厦常在较陡峭的礁岸" * 30_000
    boundaries = zh.Jieba().boundaries(text)
    assert len(boundaries) == 30_000 * len(jieba.lcut(text[: len(text) // 30_000]))
    # One run of the HMM, for which jieba itself takes quadratic time.
    assert len(zh.Jieba().boundaries("龘" * 50_000)) > 10_000


@pytest.mark.parametrize("fast", [True, False])
def test_jieba_is_pickled_without_its_dictionary(fast):
    segmenter = zh.Jieba(hmm=False, fast=fast)
    segmenter("好")
    pickled = pickle.dumps(segmenter)
    assert len(pickled) < 1000
    copy = pickle.loads(pickled)
    assert (copy.hmm, copy.fast) == (False, fast)
    assert copy.segment(TEXTS) == segmenter.segment(TEXTS)


def test_repr_tells_the_words_and_not_how_they_are_found():
    assert repr(zh.Jieba()) == repr(zh.Jieba(fast=False)) == "Jieba(hmm=True)"
    assert repr(zh.Jieba(hmm=False)) == "Jieba(hmm=False)"
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


def test_words_added_to_jieba_itself_do_not_count():
    text = "吃香菇鸡蛋汤面"
    before = zh.Jieba(fast=False)(text)
    jieba.add_word(text)
    try:
        assert jieba.lcut(text) == [text]
        assert zh.Jieba(fast=False)(text) == before
        assert zh.Jieba()(text) == before
    finally:
        jieba.dt = jieba.Tokenizer()
        for name in ("add_word", "cut", "lcut"):
            setattr(jieba, name, getattr(jieba.dt, name))


def test_without_rjieba_jieba_cuts(monkeypatch):
    pickled = pickle.dumps(zh.Jieba())
    # Also without the `has_word` that is new in 0.2.2.
    for rjieba in (None, types.SimpleNamespace(Jieba=object)):
        monkeypatch.setitem(sys.modules, "rjieba", rjieba)
        assert pickle.loads(pickled)("我想吃鸡蛋") == ["我", "想", "吃", "鸡蛋"]


DICTIONARY = (
    "\ufeff云计算 5\n李小福 2 nr\n\n创新办 3 i\r\neasy_install 3 eng\n台中\n石墨烯\n"
)
USER_TEXTS = [
    "李小福是创新办主任也是云计算方面的专家",
    "台中easy_install石墨烯",
    "网易",
]


@pytest.mark.parametrize("hmm", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_user_dictionary_is_that_of_jieba(hmm, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(DICTIONARY, encoding="utf-8", newline="")
    expected = jieba.Tokenizer()
    expected.load_userdict(str(path))
    words = [expected.lcut(text, HMM=hmm) for text in USER_TEXTS]
    assert words != zh.Jieba(hmm=hmm).segment(USER_TEXTS)
    segmenter = zh.Jieba(hmm=hmm, user_dictionary=path)
    path.unlink()
    assert pickle.loads(pickle.dumps(segmenter)).segment(USER_TEXTS) == words
    lines = [line.strip() for line in DICTIONARY.split("\n") if line]
    assert zh.Jieba(hmm=hmm, user_dictionary=lines).segment(USER_TEXTS) == words


def test_malformed_user_dictionary_is_refused(tmp_path):
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


@settings(max_examples=100, deadline=None)
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
    # One is ours.
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


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("albert_tiny_zh", "albert_tiny_zh_a/albert_model.ckpt.index.json"),
        ("albert_tiny_zh_google", "albert_tiny_zh_google/albert_model.ckpt.index.json"),
        (
            "albert_small_zh_google",
            "albert_small_zh_google/albert_model.ckpt.index.json",
        ),
        ("albert_base_zh_google", "albert_base_zh_google/model.ckpt-best.index.json"),
    ],
)
def test_size_has_as_many_weights_as_the_released_file(no_weights, name, index, assets):
    tensors = json.loads((assets / "released" / index).read_text())["tensors"]
    released = sum(
        np.prod(tensor["shape"], dtype=int)
        for tensor_name, tensor in tensors.items()
        if tensor_name.startswith("bert/") and "adam" not in tensor_name
    )
    backbone = albert_tf.models.AlbertBackbone(**zh.SIZES[name])
    assert backbone.count_params() == released
