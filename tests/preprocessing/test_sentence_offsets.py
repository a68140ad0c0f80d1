"""Articles are split into sentences, and sentences are packed into windows."""

import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.preprocessing.articles import (
    WHITE_SPACE,
    choose_sentences,
    sentence_bounds,
    sentences_of,
    split_sentences,
    split_sentences_in_graph,
)

ENDS = "。！？!?…\n.”）) \u3000"


def test_where_sentences_end():
    articles = [
        ["他来了。", "她走了！"],
        ["他说：“好吗？！”", "她说：“好……”"],
        ["圆周率是3.14。", "a.com"],
        ["It rained. ", "We left."],
        ["标题\n\n　", "正文。 "],
        ["没有标点"],
        [""],
    ]
    joined = ["".join(row) for row in articles]
    for form in (joined, articles, tf.constant(joined)):
        assert sentences_of(form) == articles


@settings(max_examples=150)
@given(st.text(st.sampled_from(ENDS) | st.characters(exclude_categories=["Cs"])))
def test_sentences_joined_are_the_text_and_the_graph_cuts_alike(text):
    sentences = split_sentences(text)
    assert "".join(sentences) == text
    assert all(sentences) or sentences == [""]
    bounds = sentence_bounds(sentences)
    for sentence, (start, end) in zip(sentences, bounds, strict=True):
        assert text[start:end] == sentence.strip(WHITE_SPACE)
    (row,) = split_sentences_in_graph(tf.constant([text])).to_list()
    # The graph replaces the character that it splits at.
    in_graph = [sentence.decode() for sentence in row]
    assert in_graph == [sentence.replace("\ufdd0", "\ufdd1") for sentence in sentences]


def test_the_best_sentences_that_fit_are_chosen_in_order():
    sentences = ["一二三。", " \n", "四五。", "六七八九。"]
    scores = [0.2, 0.9, 0.5, 0.7]
    # With at most 4 characters the second best fits, where the best does not.
    for count, most, expected in (
        (2, None, [2, 3]),
        (9, None, [0, 2, 3]),
        (2, 7, [3]),
        (2, 4, [2]),
    ):
        assert choose_sentences(sentences, scores, count, most) == expected
