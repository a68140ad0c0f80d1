"""Sentences of Chinese text, with English in it."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zh
from zh.sentences import _CLOSERS, _FULL_MARKS

# A bar marks the end of a sentence.
SENTENCES = {
    "dialogue": "他说：“你好吗？”|她说：“好。”",
    "traditional quotes": "他問：「你來嗎？」|她答：「不來。」|他走了。",
    "quote in a quote": "他说：“她问：‘你好吗？’”|我没听见。",
    "traditional quote in a quote": "他說：「她問『真的嗎？』」|我不知道。|",
    "quotation of several sentences": "“你好。|我走了。”|他说。",
    "comma after a quotation": "只留下『鸟！|巨大的鸟啊！』，再无消息。|",
    "other stops after a quotation": "他问“谁？”；她问“哪里？”：都没有回答。",
    "dash after a mark": "并日而食。|——臣非不自惜也。|",
    "mark after a closing quote": "他说“走”。|她说“好！”。|",
    "straight quotes": '他说:"你好吗?"|她说:"好。|我走了。"|',
    "straight quote that opens": '他走了。|"你好"是她说的。|',
    "straight quotes by line": '5"的屏幕。\n|他走了。|"你好。"|',
    "straight quote alone": '他走了。"\n|她也走了。|',
    "single quotes": "她说：'好！'|他走了。|",
    "brackets": "（他走了。）|【真的吗？】|〔是的！〕|她来了（不久）。|",
    "full-width and half-width brackets": "他走了。］｝)]}|她来了。|",
    "quote in brackets": "（他说：“走！”）|她来了。|",
    "title": "《谁动了我的奶酪？》是一本书。|《你好，李焕英！》呢？|",
    "title alone": "《翻滚吧！阿信》\n|下一行。|",
    "title that is not closed": "《谁？|是我。|",
    "marks together": "真的吗？！|什么？？？|好。。。|啊！！！|what?! |是‼⁉|",
    "half-width marks": "你好吗?|我很好!|谢谢。|",
    "half-width stop of Japanese": "ﾊｲ｡|ｿｳﾃﾞｽ｡|",
    "marks past white space": "他走了 。 ！|她来了 ）。|",
    "ellipsis at the end": "我……|",
    "ellipsis between sentences": "他走了……|天黑了…|没有人。|",
    "ellipsis in a quotation": "他唱：“寿筵开处风光好……”|众人都笑了。|",
    "ellipsis and a mark": "他走了……。|真的……？！|天黑了！……|没有人。|",
    "ellipsis after a mark": "也未可定。……|但我此刻走去。……”|说到这里。|",
    "ellipsis and a comma": "他走了……，天黑了。|",
    "pause": "我……我不知道。|我..我..我那天晚上走了。|七……七……七滚了！|",
    "ellipsis first": "“……不是。”|他说：“…我走了。”|",
    "ellipsis first in a line": "他走了。\n|……走了。||",
    "dots": "旗舰店 是 ... ...\n|他走了...|天黑了......|没有人。|",
    "dots in English": "Wait... what...ever... |He left.|",
    "semicolons": "春天来了；花开了;鸟也来了。|",
    "decimals": "圆周率是3.14，约3.1.4倍，占50.5%。|",
    "addresses": "见www.example.com/a.html?id=1&b=2!x?ID=1，占1...10，邮箱a.b@c.cn。|",
    "file names": "运行 setup.py 或 a.out 即可。|",
    "brands": "Yahoo! is here，iPhone 15 Pro. |他买了。|",
    "English": "Hello there. |How are you? |I am fine! |Good.|",
    "English quotes": 'He said, "Go." |"Why?" she asked. |(No.) |Done.|',
    "English quote continues": '"Really?" he asked, "Go!" and left. |He ran.|',
    "English single quotes": "'It is.' |'Yes, don't.' |He left.|",
    "small letter": "This is approx. right, R. graveolens too. |Yes.|",
    "number after a dot": "See page. 5 and No. 7. |Yes.|",
    "titles of persons": "Mr. Smith, Dr. Wang and Prof. Li met St. John. |Yes.|",
    "initials": "J. K. Rowling, the U.S. Army, e.g. Tokyo, i.e. 东京. |好的。|",
    "more abbreviations": "Ph.D. Students vs. Teachers (cf. Fig. A, et al. B). |Yes.|",
    "year at the end": "It was in 2010. |He left in 1999. |他走了。|",
    "items": "1. 苹果\n|2. 香蕉\n|（3. 梨）\n|12. Pears. |Yes.|",
    "English then Chinese": "他用 Python. |我用 C. elegans. |好。|",
    "Chinese with dots": "约翰.史密斯来了. |他走了. |",
    "line breaks": "标题\n|正文。\r\n\r\n　　|第二段\r|第三段\n\n|a title\r|a line",
    "paragraphs": "他走了。\n\n　　|“她呢？”\n|",
    "closing quote in the next line": "他走了。\n”|她来了。|",
    "white space": "他走了。 　|她来了。\t|",
    "nothing": "",
    "only white space": " \n ",
    "only marks": "。。。？！",
    "no mark": "我想吃鸡蛋",
    "verse": "白日依山尽，黄河入海流。\n|欲穷千里目，更上一层楼。|",
}


def sentences_of(marked):
    return [sentence for sentence in marked.split("|") if sentence]


def test_sentences():
    expected = {name: sentences_of(marked) for name, marked in SENTENCES.items()}
    found = {name: zh.split_sentences("".join(x)) for name, x in expected.items()}
    assert found == expected


TEXTS = st.lists(
    st.one_of(
        st.text("好他Aa1 。！？!?.…“”‘’「」『』\"'（）)》《\n\r，：；　", max_size=6),
        st.sampled_from(["Mr.", "U.S.", "3.14", "1. ", "……", "...", "《a？》", "\r\n"]),
        st.text(max_size=3),
    ),
    max_size=10,
).map("".join)


@settings(max_examples=200)
@given(TEXTS)
def test_sentences_joined_give_the_text(text):
    sentences = zh.split_sentences(text)
    assert "".join(sentences) == text
    assert all(sentences)
    # Only the first may begin with a closing mark.
    for sentence in sentences[1:]:
        assert sentence[0] not in _CLOSERS + _FULL_MARKS + "!?"
        assert not sentence[0].isspace()


def test_corpus_is_split(assets):
    for path in sorted((assets / "data" / "corpus").glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        sentences = zh.split_sentences(text)
        assert "".join(sentences) == text
        assert 15 < len(text) / len(sentences) < 60, path.name
        # The longest are lists of persons or gifts.
        assert max(map(len, sentences)) < 800, path.name


UNITS = [
    *("好", "。", "。 ", ".", ".)", ". ", "…", "…a", "？a", '"', '。"', "！，", "”"),
    *("《", "《啊", "\n", " ", "Mr. ", "a.", "《a？》", "'", "(. ", "1. ", "。\n)"),
]


@pytest.mark.nightly
def test_time_is_linear():
    for unit in UNITS:
        text = unit * (300_000 // len(unit))
        start = time.perf_counter()
        assert "".join(zh.split_sentences(text)) == text
        # Less than one second; minutes if it were quadratic.
        assert time.perf_counter() - start < 20, unit
