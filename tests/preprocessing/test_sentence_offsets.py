"""Articles are split into sentences, and sentences are packed into windows."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_classifier import CLS, SEP, VOCABULARY

from albert_tf.preprocessing import AlbertSummarizerPreprocessor
from albert_tf.preprocessing.sentences import (
    WHITE_SPACE,
    choose_sentences,
    sentence_bounds,
    sentences_of,
    split_sentences,
    split_sentences_in_graph,
)
from albert_tf.tokenizers import WordPieceTokenizer

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
    assert sentences_of(["".join(row) for row in articles]) == articles


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


def preprocessor(sequence_length):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    return AlbertSummarizerPreprocessor(tokenizer, sequence_length=sequence_length)


def test_windows_hold_whole_sentences_of_one_article():
    rows = [["好" * n for n in counts] for counts in ((1, 2, 3, 9, 1), (0,), (1, 1))]
    articles = preprocessor(8).pack_texts(rows)
    # With [CLS] and [SEP] 3, 4, 5, 8 (cut), 3; 2; 3, 3.
    assert articles.tokens.row_lengths().numpy().tolist() == [7, 5, 8, 3, 2, 6]
    assert articles.article.numpy().tolist() == [0, 0, 0, 0, 1, 2]
    flat = articles.tokens.values.numpy()
    assert articles.positions.numpy().tolist() == np.flatnonzero(flat == CLS).tolist()
    assert np.count_nonzero(flat == CLS) == np.count_nonzero(flat == SEP) == 8


def test_a_call_returns_the_first_window_of_each_article():
    features = preprocessor(8)(["好。很好。", "", "好。" * 9])
    good, stop = VOCABULARY.index("好"), VOCABULARY.index("。")
    assert features["token_ids"].numpy().tolist() == [
        [CLS, good, stop, SEP, 0, 0, 0, 0],
        [CLS, SEP, 0, 0, 0, 0, 0, 0],
        [CLS, good, stop, SEP, CLS, good, stop, SEP],
    ]


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


def test_wrong_articles_raise():
    for articles in ([[]], [3], (["好"], ["好"])):
        with pytest.raises((ValueError, TypeError)):
            sentences_of(articles)
