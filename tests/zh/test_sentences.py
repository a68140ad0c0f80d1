"""Sentences of Chinese text, with English in it."""

from hypothesis import given, settings
from hypothesis import strategies as st

import zh
from zh.sentences import _CLOSERS, _FULL_MARKS

# A bar marks the end of a sentence.
SENTENCES = {
    "dialogue": "他说：“你好吗？”|她说：“好。”",
    "traditional quotes": "他問：「你來嗎？」|她答：「不來。」|他走了。",
    "quote in a quote": "他说：“她问：‘你好吗？’”|我没听见。",
    "quotation of several sentences": "“你好。|我走了。”|他说。",
    "comma after a quotation": "只留下『鸟！|巨大的鸟啊！』，再无消息。|",
    "straight quotes": '他说:"你好吗?"|她说:"好。|我走了。"|',
    "brackets": "（他走了。）|【真的吗？】|〔是的！〕|她来了（不久）。|",
    "title": "《谁动了我的奶酪？》是一本书。|《你好，李焕英！》呢？|",
    "marks together": "真的吗？！|什么？？？|好。。。|啊！！！|what?! |是‼⁉|",
    "marks past white space": "他走了 。 ！|她来了 ）。|",
    "ellipsis and a mark": "他走了……。|真的……？！|天黑了！……|没有人。|",
    "pause": "我……我不知道。|我..我..我那天晚上走了。|七……七……七滚了！|",
    "ellipsis first": "“……不是。”|他说：“…我走了。”|",
    "dots": "旗舰店 是 ... ...\n|他走了...|天黑了......|没有人。|",
    "semicolons": "春天来了；花开了;鸟也来了。|",
    "decimals": "圆周率是3.14，约3.1.4倍，占50.5%。|",
    "addresses": "见www.example.com/a.html?id=1&b=2!x?ID=1，占1...10，邮箱a.b@c.cn。|",
    "brands": "Yahoo! is here，iPhone 15 Pro. |他买了。|",
    "English quote continues": '"Really?" he asked, "Go!" and left. |He ran.|',
    "small letter": "This is approx. right, R. graveolens too. |Yes.|",
    "titles of persons": "Mr. Smith, Dr. Wang and Prof. Li met St. John. |Yes.|",
    "more abbreviations": "Ph.D. Students vs. Teachers (cf. Fig. A, et al. B). |Yes.|",
    "items": "1. 苹果\n|2. 香蕉\n|（3. 梨）\n|12. Pears. |Yes.|",
    "English then Chinese": "他用 Python. |我用 C. elegans. |好。|",
    "line breaks": "标题\n|正文。\r\n\r\n　　|第二段\r|第三段\n\n|a title\r|a line",
    "white space": "他走了。 　|她来了。\t|",
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
