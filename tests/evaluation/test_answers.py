"""EM and F1 of answers, against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.evaluation import best_null_threshold, cmrc_scores, squad_scores

# prediction, answers, exact match, common segments, segments of the answer that
# counts, segments of the prediction.
CMRC = [
    # Punctuation and case do not count: 北 京 大 学 2008.
    ("北京大学（2008）", ["北京大学2008。"], 1, 5, 5, 5),
    # 王 小 波 : common 小 波.
    ("小波", ["王小波"], 0, 2, 3, 2),
    # The run must be unbroken: 我 喜 欢 北 京 against 我 爱 北 京, common 北 京.
    ("我喜欢北京", ["我爱北京"], 0, 2, 4, 5),
    # Words and numbers are one segment: 1998 年 iphone 5 against 1998 年.
    ("1998年iPhone 5", ["1998年"], 0, 2, 2, 4),
    # A point or comma within a number, and signs of ASCII: 约 3.5 % against
    # 3.5 %; "$1,200" is $ 1,200.
    ("约3.5%", ["3.5%"], 0, 2, 2, 3),
    ("$1,200元", ["1,200元"], 0, 2, 2, 3),
    # "-" is removed before the cut: sinosat2 ; brackets of ASCII are segments:
    # 鑫 诺 ( sinosat2 ).
    ("SINOSAT-2", ["鑫诺(SINOSAT-2)"], 0, 1, 5, 1),
    # A last full stop of Latin is a segment of its own: mr. smith . / mr. smith.
    ("Mr. Smith.", ["mr. smith"], 0, 2, 2, 3),
    # Rare characters (㙍, not in U+4E00 to U+9FA5) make words: 㙍㙍 山.
    ("㙍㙍山", ["㙍山"], 0, 1, 2, 2),
    # The ellipsis stays: … is a word.
    ("北京…", ["北京"], 0, 2, 2, 3),
    # The best of several: 三 国 against 三 国 and 三 国 演 义.
    ("三国", ["三国演义", "三国"], 1, 2, 2, 2),
    ("上海", ["北京"], 0, 0, 2, 2),
    ("don't stop", ["do n't"], 0, 2, 2, 3),
    ("", ["北京"], 0, 0, 2, 0),
]


@pytest.mark.parametrize("case", CMRC, ids=lambda case: case[0])
def test_cmrc(case):
    prediction, answers, exact, common, of_answer, of_prediction = case
    scores = cmrc_scores([prediction], [answers])
    precision = common / of_prediction if common else 0
    recall = common / of_answer
    f1 = 2 * precision * recall / (precision + recall) if common else 0
    assert scores["exact_match"] == 100 * exact
    assert scores["f1"] == pytest.approx(100 * f1)


SQUAD = [
    # Articles, case, punctuation and spaces.
    ("The  Yellow River.", ["yellow river", "river"], 1, 1),
    # 2 common of 3 and 2 words: precision 2/3, recall 1.
    ("big yellow river", ["Yellow River"], 0, 0.8),
    # A bag: the second "la" counts, the order does not.
    ("la la land", ["land, la!"], 0, 2 * (2 / 3) * 1 / (2 / 3 + 1)),
    # "an" is an article, "and" is not: precision 1/2, recall 1/2.
    ("an apple and", ["apple pie"], 0, 0.5),
    # Chinese punctuation is no ASCII punctuation, and there are no spaces.
    ("北京。", ["北京"], 0, 0),
    ("U.S.A.", ["USA"], 1, 1),
    ("", ["river"], 0, 0),
    ("river", [], 0, 0),
    ("", [], 1, 1),
    ("", [""], 1, 1),
    # An answer of which nothing is left is none.
    ("the", ["a"], 1, 1),
]


@pytest.mark.parametrize("case", SQUAD, ids=str)
def test_squad(case):
    prediction, answers, exact, f1 = case
    scores = squad_scores([prediction], [answers])
    assert scores["exact_match"] == 100 * exact
    assert scores["f1"] == pytest.approx(100 * f1)


def test_means_and_those_with_and_without_answer():
    predictions = ["river", "big river", "", "sea"]
    scores = squad_scores(predictions, [["river"], ["river"], [], []])
    # F1 of "big river": precision 1/2, recall 1.
    f1 = [1, 2 / 3, 1, 0]
    assert scores == {
        "exact_match": 50.0,
        "f1": pytest.approx(100 * sum(f1) / 4),
        "total": 4,
        "answerable_exact_match": 50.0,
        "answerable_f1": pytest.approx(100 * sum(f1[:2]) / 2),
        "unanswerable_exact_match": 50.0,
    }
    assert squad_scores(["sea"], [["sea"]]).keys() == {"exact_match", "f1", "total"}


def test_what_is_refused():
    with pytest.raises(ValueError, match="Received: 1 and 2"):
        cmrc_scores(["北京"], [["北京"], ["上海"]])
    with pytest.raises(ValueError, match="Element 0 is '北京'"):
        cmrc_scores(["北京"], ["北京"])
    with pytest.raises(ValueError, match="at least one"):
        squad_scores([], [])


@given(
    st.lists(
        st.tuples(st.integers(-5, 5), st.integers(0, 4), st.integers(0, 4)), min_size=1
    )
)
def test_the_best_threshold(rows):
    margins, answered, unanswered = np.array(rows, "float64").T

    def score(threshold):
        return np.where(margins > threshold, unanswered, answered).sum()

    found = best_null_threshold(margins, answered, unanswered)
    assert score(found) == max(map(score, np.arange(-6.5, 7)))
