"""Words of Chinese text, and the sizes of the Chinese releases."""

import json
import pathlib
import pickle

import jieba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zh
from albert_tf.preprocessing.words import word_boundaries

ROOT = pathlib.Path(__file__).parents[2]


@settings(max_examples=100)
@given(st.lists(st.text(max_size=30), max_size=3))
def test_words_joined_give_the_text(texts):
    assert ["".join(words) for words in zh.segment(iter(texts))] == texts


def test_a_segmenter_that_changes_the_text_is_refused():
    message = "segmenter changed the text: 'ab 好 ' became 'ab好'"
    with pytest.raises(ValueError, match=message):
        zh.segment(["ab 好 "], segmenter=str.split)
    with pytest.raises(TypeError, match=r"should return strings.*\[\('ab"):
        zh.segment(["ab 好 "], segmenter=lambda text: [(text, "a")])
    with pytest.raises(TypeError, match="list of strings, not one string"):
        zh.segment("我想吃鸡蛋")


# White space, characters outside jieba's dictionary, ties, rare and long words.
ODD = [
    *("一上a", "了的不", "龘靐", "T恤衫", "江南style", "㐀好", "\u9fd6好", "豈更"),
    *("é한あ٣", "a\rb\n", "\u2028\u3000", " \t\x0b\x85\xa0", "\u200b\ufeff\x00"),
    *("😀👨\u200d👩", "——……", "小明硕士毕业于中国科学院计算所"),
    *("踽踽踽以揗兵籖壥", "哈哈哈" + "丄a" * 40, "的" * 300, "abc" * 100),
]


def test_rjieba_finds_the_words_of_jieba():
    pytest.importorskip("rjieba", reason="rjieba is not installed (extra [fast])")
    reviews = (ROOT / "examples" / "reviews" / "test.tsv").read_text("utf-8")
    segmenter = zh.Jieba()
    assert segmenter.fast
    for text in (*ODD, reviews):
        assert segmenter(text) == jieba.lcut(text)


def test_a_user_dictionary_is_that_of_jieba(tmp_path):
    text = "李小福是创新办主任也是云计算方面的专家"
    lines = ["云计算 5", "李小福 2 nr", "", "创新办 3 i", "easy_install 3 eng"]
    path = tmp_path / "words.txt"
    path.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8", newline="")
    expected = jieba.Tokenizer()
    expected.load_userdict(str(path))
    segmenter = zh.Jieba(user_dictionary=path)
    path.unlink()
    assert segmenter(text) == expected.lcut(text) != zh.Jieba()(text)
    pickled = pickle.dumps(segmenter)
    assert len(pickled) < 1000
    assert pickle.loads(pickled)(text) == zh.Jieba(user_dictionary=lines)(text)
    assert pickle.loads(pickled)(text) == segmenter(text)
    # A run of `pretrain-data` recognises its settings by the repr.
    assert repr(segmenter) == repr(pickle.loads(pickled)) != repr(zh.Jieba())


def test_a_malformed_user_dictionary_is_refused(tmp_path):
    path = tmp_path / "words.txt"
    for content, message in (
        ("好\n云计算 5 n".encode("gb18030"), "words.txt is not UTF-8: .* 0xba.*iconv"),
        ("好\n云计算\t5\n".encode(), r"a tab in line 2: '云计算\\t5'.*frequency"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            zh.Jieba(user_dictionary=path)
    with pytest.raises(FileNotFoundError, match="吃鸡蛋"):
        zh.Jieba(user_dictionary="吃鸡蛋")


@settings(max_examples=100)
@given(st.text(st.sampled_from("好a \n\t\u3000\xa0\u200b\x1f"), max_size=20))
def test_white_space_separates_words(text):
    words = zh.Whitespace()(text)
    assert "".join(words) == text
    assert [word for word in words if not word.isspace()] == text.split()


def test_words_begin_at_the_same_places_for_all_segmenters():
    text = "好吃吗\n\n好 吃\r\n"
    for segmenter in (zh.Jieba(), jieba.lcut, jieba.cut):
        boundaries = word_boundaries(text, segmenter)
        assert boundaries.dtype == np.int64
        assert boundaries.tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    found = word_boundaries(text, zh.Whitespace())
    assert found.tolist() == [0, 3, 4, 5, 6, 7, 8, 9]
    for segmenter in (zh.Jieba(), zh.Whitespace(), list):
        assert word_boundaries("", segmenter).tolist() == []
        assert word_boundaries("\n", segmenter).tolist() == [0]


CONFIGS = {
    **{
        f"albert_{name}_zh": f"configs/albert_config_{name}.json"
        for name in ("tiny", "base", "large", "xlarge", "xxlarge")
    },
    # The config in the archive albert_tiny_zh_google has one layer.
    "albert_tiny_zh_google": "configs/albert_config_tiny_google.json",
    "albert_small_zh_google": "configs/albert_config_small_google.json",
    "albert_base_zh_google": "albert_base_zh_google/albert_config.json",
}
ACTIVATIONS = {"gelu": "gelu_approximate", "relu": "relu"}
NAMES = {
    "num_layers": "num_hidden_layers",
    "hidden_dim": "hidden_size",
    "num_heads": "num_attention_heads",
    "intermediate_dim": "intermediate_size",
    "embedding_dim": "embedding_size",
    "vocabulary_size": "vocab_size",
}


def test_sizes_are_those_of_the_released_configs(assets):
    # This project trained the other one.
    assert set(zh.SIZES) - {"albert_micro_zh"} == set(CONFIGS)
    for name, path in CONFIGS.items():
        size = zh.SIZES[name]
        config = json.loads((assets / "released" / path).read_text())
        assert all(size[ours] == config[theirs] for ours, theirs in NAMES.items())
        activation = size.get("activation", "gelu_approximate")
        assert activation == ACTIVATIONS[config["hidden_act"]]
        assert size.get("normalize_first", False) == (config.get("ln_type") == "preln")
        projection = size.get("embedding_projection", "before_layer_norm")
        assert (projection == "after_layer_norm") == name.endswith("_google")
        assert config["max_position_embeddings"] == 512
        assert config["type_vocab_size"] == 2
