"""ROUGE by character, by hand; which sentences to learn; the baseline."""

import numpy as np
import pytest

from albert_tf.evaluation import centroid_scores, oracle_labels, rouge_scores

pytest.importorskip("rouge_score")


def f1(common, first, second):
    return 2 * common / (first + second)


def test_rouge_by_hand():
    scores = rouge_scores(["他在北京见了Zoe。"], ["Zoe在北京，很好"])
    # 他 在 北 京 见 了 zoe; zoe 在 北 京 很 好
    assert scores == {
        "rouge_1": pytest.approx(f1(4, 7, 6)),
        "rouge_2": pytest.approx(f1(2, 6, 5)),
        "rouge_l": pytest.approx(f1(3, 7, 6)),
    }
    both = rouge_scores(["他在北京见了Zoe。", "好"], ["Zoe在北京，很好", "好"])
    assert both["rouge_l"] == pytest.approx((scores["rouge_l"] + 1) / 2)
    with pytest.raises(ValueError, match="2 and 1"):
        rouge_scores(["好", "好"], ["好"])


def test_sentences_are_chosen_as_long_as_they_add_to_the_summary():
    sentences = ["天气很好。", "公司昨天发布新手机，", "价格是三千元。", "大家鼓掌。"]
    assert oracle_labels(sentences, "公司发布新手机，价格三千元") == [0, 1, 1, 0]
    assert oracle_labels(sentences, "公司发布新手机，价格三千元", most=1)[1] == 1
    assert oracle_labels(sentences, "abc") == [0, 0, 0, 0]


def test_centroid_by_hand():
    # Without pairs: each character alone in a sentence.
    scores = centroid_scores(["好", "好", "差", ""])
    assert scores[0] == scores[1] > scores[2] > scores[3] == 0
    # The mean of two unit vectors of 好 and one of 差, over four.
    np.testing.assert_allclose(scores[[0, 2]], np.array([2, 1]) / 5**0.5)
    # 好, 吃 and the pair of both, against one that shares nothing.
    scores = centroid_scores(["好吃", "好，吃", "差"])
    np.testing.assert_allclose(scores, np.array([2, 2, 1]) / 5**0.5)
    assert centroid_scores(["。", ""]).tolist() == [0, 0]
