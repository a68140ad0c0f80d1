"""The scores, against cases worked out by hand and exhaustive search."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from albert_tf.evaluation import (
    classification_report,
    classification_scores,
    cmrc_scores,
    entity_scores,
    multi_label_scores,
    oracle_labels,
    regression_scores,
    rouge_scores,
    spelling_scores,
    squad_scores,
)
from albert_tf.evaluation.answer_scores import best_null_threshold
from albert_tf.evaluation.scores import best_thresholds


def test_classes_by_hand():
    # F1: "a" 2/3 (one of two found, none wrong), "b" 4/5 (two found, one wrong).
    scores = classification_scores(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    assert scores == pytest.approx(
        {"accuracy": 3 / 4, "macro_f1": (2 / 3 + 4 / 5) / 2, "micro_f1": 3 / 4}
    )
    report = classification_report([0, 0, 2], [0, 2, 2], ["a", "b", "c"])
    assert report["confusion_matrix"] == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    assert report["b"]["support"] == 0 and report["c"]["precision"] == 0.5


def test_label_lists_by_hand():
    truth = [[1, 1, 0], [0, 0, 0], [1, 0, 0]]
    chosen = [[1, 0, 0], [0, 0, 0], [1, 0, 1]]
    # Two found, one missed, one wrong; "c" is in no text.
    scores = multi_label_scores(truth, chosen)
    assert scores == pytest.approx(
        {"micro_f1": 4 / 6, "macro_f1": 1 / 3, "exact_match": 1 / 3}
    )
    report = classification_report(truth, chosen, ["a", "b", "c"])
    assert report["micro avg"]["f1-score"] == pytest.approx(4 / 6)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=1, max_size=12))
def test_no_threshold_has_a_better_f1(examples):
    truth = np.array([[known] for known, _ in examples])
    values = np.array([[value / 10] for _, value in examples])
    (threshold,) = best_thresholds(truth, values)
    if not truth.any():
        assert threshold == 0.5
        return
    best = max(f1_score(truth, values >= x, zero_division=0) for x in values[:, 0])
    assert f1_score(truth, values >= threshold, zero_division=0) == best
    # It lies between the probabilities.
    assert not (np.abs(values - threshold) < 0.04).any()


def test_correlations_by_hand(monkeypatch):
    scores = regression_scores([1, 2, 3, 4], np.array([[1], [2], [4], [3]], "float32"))
    # Ranks and values have the same correlation: 1 - 6 * 2 / (4 * 15).
    assert scores == pytest.approx({"pearson": 0.8, "spearman": 0.8, "mse": 0.5})
    assert regression_scores([1, 2, 3], [2, 2, 2])["spearman"] == 0.0
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r"albert-tf\[evaluation\]"):
        regression_scores([1, 2], [1, 2])


def test_entities_by_hand():
    truth = [[(0, 2, "PER"), (3, 5, "LOC")], [(0, 1, "PER"), (1, 2, "PER")], []]
    # One right, one with another end; two neighbours as one; one where there is none.
    predicted = [[(0, 2, "PER"), (3, 6, "LOC")], [(0, 2, "PER")], [(4, 5, "LOC")]]
    scores = entity_scores(truth, predicted)
    assert (scores["precision"], scores["recall"]) == (1 / 4, 1 / 4)
    assert scores["types"]["PER"] == pytest.approx(
        {"precision": 1 / 2, "recall": 1 / 3, "f1": 2 / 5, "count": 3}
    )
    assert entity_scores([[], []], [[], []])["f1"] == 0.0
    with pytest.raises(ValueError, match="'truth': 3, 'predicted': 1"):
        entity_scores(truth, [[]])


# === Answers ===

# prediction, answers, exact match, F1: twice the common segments over those of the
# answer that counts and of the prediction.
CMRC = [
    # Punctuation and case do not count: 北 京 大 学 2008.
    ("北京大学（2008）", ["北京大学2008。"], 1, 2 * 5 / 10),
    # The run must be unbroken: 我 喜 欢 北 京 against 我 爱 北 京, common 北 京.
    ("我喜欢北京", ["我爱北京"], 0, 2 * 2 / 9),
    # Words and numbers are one segment: 1998 年 iphone 5 against 1998 年.
    ("1998年iPhone 5", ["1998年"], 0, 2 * 2 / 6),
    # A point within a number, and signs of ASCII: 约 3.5 % against 3.5 %.
    ("约3.5%", ["3.5%"], 0, 2 * 2 / 5),
    # "-" is removed before the cut: sinosat2 ; brackets of ASCII are segments:
    # 鑫 诺 ( sinosat2 ).
    ("SINOSAT-2", ["鑫诺(SINOSAT-2)"], 0, 2 * 1 / 6),
    # A final Latin full stop is a separate segment: mr. smith . / mr. smith.
    ("Mr. Smith.", ["mr. smith"], 0, 2 * 2 / 5),
    # Rare characters (㙍, not in U+4E00 to U+9FA5) make words: 㙍㙍 山.
    ("㙍㙍山", ["㙍山"], 0, 2 * 1 / 4),
    # The ellipsis stays: … is a word.
    ("北京…", ["北京"], 0, 2 * 2 / 5),
    # The best of several: 三 国 against 三 国 and 三 国 演 义.
    ("三国", ["三国演义", "三国"], 1, 2 * 2 / 4),
    ("", ["北京"], 0, 0),
]


SQUAD = [
    # Articles, case, punctuation and spaces.
    ("The  Yellow River.", ["yellow river", "river"], 1, 1),
    # A bag: the second "la" counts, the order does not.
    ("la la land", ["land, la!"], 0, 2 * (2 / 3) * 1 / (2 / 3 + 1)),
    # "an" is an article, "and" is not: precision 1/2, recall 1/2.
    ("an apple and", ["apple pie"], 0, 0.5),
    # Chinese punctuation is no ASCII punctuation, and there are no spaces.
    ("北京。", ["北京"], 0, 0),
    ("river", [], 0, 0),
    ("", [], 1, 1),
]


@pytest.mark.parametrize(
    ("kind", "case"), [*(("cmrc", x) for x in CMRC), *(("squad", x) for x in SQUAD)]
)
def test_answers_by_hand(kind, case):
    prediction, answers, exact, f1 = case
    score = {"squad": squad_scores, "cmrc": cmrc_scores}[kind]
    scores = score([prediction], [answers])
    assert scores["exact_match"] == 100 * exact
    assert scores["f1"] == pytest.approx(100 * f1)


def test_answers_are_scored_with_and_without_those_that_have_none():
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
    with pytest.raises(ValueError, match="first element is '北京'"):
        cmrc_scores(["北京"], ["北京"])


rows = st.tuples(st.integers(-5, 5), st.integers(0, 4), st.integers(0, 4))


@given(st.lists(rows, min_size=1))
def test_no_null_threshold_is_better(rows):
    margins, answered, unanswered = np.array(rows, "float64").T

    def score(threshold):
        return np.where(margins > threshold, unanswered, answered).sum()

    found = best_null_threshold(margins, answered, unanswered)
    assert score(found) == max(map(score, np.arange(-6.5, 7)))


def test_spelling_by_hand():
    spellings = [
        ("我再家", "我在家", "我在家"),
        # Another character, another place, and none.
        ("我再家", "我在家", "我载家"),
        ("我再家", "我在家", "他再家"),
        ("我再家", "我在家", "我再家"),
        ("很好", "很好", "很好"),
        ("很好", "很好", "很好"),
        ("很好", "很好", "很号"),
    ]
    scores = spelling_scores(*zip(*spellings, strict=True))
    # Accuracy, precision, recall and F1 of detection and correction.
    expected = [4 / 7, 2 / 3, 2 / 4, 4 / 7, 3 / 7, 1 / 2, 1 / 4, 1 / 3, 1 / 3]
    assert list(scores.values()) == pytest.approx(expected)
    assert list(scores)[-2:] == ["correction_f1", "false_positive_rate"]
    with pytest.raises(ValueError, match="texts 0 differ in length"):
        spelling_scores(["好"], ["好吃"], ["好"])


def test_rouge_by_hand():
    scores = rouge_scores(["他在北京见了Zoe。"], ["Zoe在北京，很好"])
    # 他 在 北 京 见 了 zoe; zoe 在 北 京 很 好
    expected = {"rouge_1": 2 * 4 / 13, "rouge_2": 2 * 2 / 11, "rouge_l": 2 * 3 / 13}
    assert scores == pytest.approx(expected)


def test_sentences_are_chosen_as_long_as_they_add_to_the_summary():
    sentences = ["天气很好。", "公司昨天发布新手机，", "价格是三千元。", "大家鼓掌。"]
    assert oracle_labels(sentences, "公司发布新手机，价格三千元") == [0, 1, 1, 0]
    assert oracle_labels(sentences, "abc") == [0, 0, 0, 0]
