"""The scores, against cases done by hand and exhaustive search."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from albert_tf.evaluation import (
    best_thresholds,
    classification_report,
    classification_scores,
    level_scores,
    multi_label_report,
    multi_label_scores,
    regression_scores,
)


def test_classes_by_hand():
    # F1: "a" 2/3 (one of two found, none wrong), "b" 4/5 (two found, one wrong).
    scores = classification_scores(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    assert scores == pytest.approx(
        {"accuracy": 3 / 4, "macro_f1": (2 / 3 + 4 / 5) / 2, "micro_f1": 3 / 4}
    )


def test_a_report_has_every_class_and_the_matrix():
    report = classification_report([0, 0, 2], [0, 2, 2], ["a", "b", "c"])
    assert report["confusion_matrix"] == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    assert report["b"]["support"] == 0 and report["c"]["precision"] == 0.5
    text = classification_report([0, 0, 2], [0, 2, 2], ["a", "b", "c"], as_text=True)
    assert "0.6667" in text


def test_levels_of_hierarchical_names():
    labels = ["体育/足球", "体育/篮球", "财经/股票/创业板", "其他"]
    truth, predicted = [0, 1, 2, 3], [1, 1, 3, 3]
    first, second, third = level_scores(truth, predicted, labels)
    assert [x["level"] for x in (first, second, third)] == [1, 2, 3]
    assert first["accuracy"] == 3 / 4 and second["accuracy"] == 2 / 4
    assert third == {"level": 3, **classification_scores(truth, predicted)}
    assert level_scores([0], [0], ["体育", "财经"]) == []


def test_label_lists_by_hand():
    truth = [[1, 1, 0], [0, 0, 0], [1, 0, 0]]
    chosen = [[1, 0, 0], [0, 0, 0], [1, 0, 1]]
    # Two found, one missed, one wrong; "c" is in no text.
    scores = multi_label_scores(truth, chosen)
    assert scores == pytest.approx(
        {"micro_f1": 4 / 6, "macro_f1": 1 / 3, "exact_match": 1 / 3}
    )
    report = multi_label_report(truth, chosen, ["a", "b", "c"])
    assert report["micro avg"]["f1-score"] == pytest.approx(4 / 6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=12))
def test_no_threshold_has_a_better_f1(examples):
    truth = np.array([[known] for known, _ in examples])
    values = np.array([[value / 10] for _, value in examples])
    (threshold,) = best_thresholds(truth, values)
    if not truth.any():
        assert threshold == 0.5
        return
    best = max(f1_score(truth, values >= x, zero_division=0) for x in values[:, 0])
    assert f1_score(truth, values >= threshold, zero_division=0) == best


def test_a_threshold_lies_between_the_two_kinds():
    thresholds = best_thresholds([[1], [0], [1], [0]], [[0.8], [0.2], [0.6], [0.1]])
    assert thresholds == pytest.approx([0.4])


def test_correlations_by_hand():
    scores = regression_scores([1, 2, 3, 4], np.array([[1], [2], [4], [3]], "float32"))
    # Of ranks and of these values alike: 1 - 6 * 2 / (4 * 15).
    assert scores == pytest.approx({"pearson": 0.8, "spearman": 0.8, "mse": 0.5})
    assert regression_scores([1, 2, 3], [2, 2, 2])["spearman"] == 0.0


def test_without_the_library_it_is_told_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r"albert-tf\[evaluation\]"):
        regression_scores([1, 2], [1, 2])
