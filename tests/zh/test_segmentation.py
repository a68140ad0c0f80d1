"""Words of Chinese text, and the sizes of the Chinese releases."""

import pathlib
import pickle

import jieba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zh
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.words import word_boundaries

ROOT = pathlib.Path(__file__).parents[2]


@settings(max_examples=100)
@given(st.lists(st.text(max_size=30), max_size=3))
def test_words_joined_give_the_text(texts):
    assert ["".join(words) for words in zh.segment(iter(texts))] == texts


# White space, characters outside jieba's dictionary, ties, rare and long words.
ODD = ["一上a", "了的不", "龘靐", "T恤衫", "江南style", "㐀好", "\u9fd6好", "豈更"]
ODD += ["é한あ٣", "a\rb\n", "\u2028\u3000", " \t\x0b\x85\xa0", "\u200b\ufeff\x00"]
ODD += ["😀👨\u200d👩", "——……", "小明硕士毕业于中国科学院计算所", "踽踽踽以揗兵籖壥"]
ODD += ["哈哈哈" + "丄a" * 40, "的" * 300, "abc" * 100]


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
    path.write_text("\n".join(lines), encoding="gb18030")
    with pytest.warns(UserWarning, match="words.txt is gb18030"):
        assert zh.Jieba(user_dictionary=path)(text) == segmenter(text)
    # The second line would be UTF-8, too.
    path.write_text("云原生数据库 10 n\n石墨烯\n", encoding="gb18030")
    with pytest.raises(AlbertError, match="name its encoding with `encoding=`"):
        zh.Jieba(user_dictionary=path)
    named = zh.Jieba(user_dictionary=path, encoding="gb18030")
    assert named("云原生数据库") == ["云原生数据库"]
    with pytest.raises(TypeError, match="not one string"):
        zh.segment(text)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("{},10,n", "云原生数据库 10 n"),
        ("{}\t10", "云原生数据库 10"),
        ("10 {} n", "云原生数据库 10 n"),
        ("{} n 10", "云原生数据库 10 n"),
        ("{} 高 n", "云原生数据库 10 n"),
        ('"{}"；3', "云原生数据库 3"),
        ("{}  10 n", "云原生数据库 10 n"),
        ("{} 石墨烯电池", "云原生数据库 10 n"),
    ],
)
def test_a_row_that_is_not_in_the_format_of_jieba_is_refused(row, expected, tmp_path):
    rows = ["石墨烯电池 10 n", row.format("云原生数据库")]
    path = tmp_path / "words.csv"
    path.write_text("\ufeff" + "\r\n".join(rows), "utf-8")
    for dictionary in (rows, path):
        with pytest.raises(AlbertError, match=f"line 2 .* such as '{expected}'"):
            zh.Jieba(user_dictionary=dictionary)


def test_a_dictionary_without_effect_is_refused(tmp_path):
    (tmp_path / "empty.txt").write_text("\ufeff\n \n", "utf-8")
    with pytest.raises(AlbertError, match="empty.txt has no words. Expected"):
        zh.Jieba(user_dictionary=tmp_path / "empty.txt")
    with pytest.raises(AlbertError, match="line 1 'word freq tag'.* Delete a header"):
        zh.Jieba(user_dictionary=["word freq tag", "云原生数据库 10 n"])
    with pytest.raises(AlbertError, match="not find 1 of 1 words .* such as 的是在"):
        zh.Jieba(user_dictionary=["的是在 1"])
    with pytest.warns(UserWarning, match="1 of 2 words .* such as 列夫·托尔斯泰"):
        # The frequency 0 removes a word.
        lines = ["列夫·托尔斯泰 3 nr", "云原生", "鸡蛋 0"]
        segmenter = zh.Jieba(user_dictionary=lines)
    assert segmenter("云原生") == ["云原生"] and "鸡蛋" not in segmenter("我想吃鸡蛋")


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
