"""Calibration, against cases worked out by hand."""

import numpy as np
import pytest
from scipy.special import softmax

from albert_tf.evaluation import calibration_scores, coverage, reliability_bins
from albert_tf.evaluation.calibration import (
    best_temperature,
    closest_temperature,
    log_loss,
    usual_temperature,
)
from albert_tf_lite.errors import AlbertError

# Two right answers of 0.9, one of 0.7 and a wrong one of 0.7.
TRUTH = [0, 0, 1, 1]
PROBABILITIES = [[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.7, 0.3]]


def test_scores_by_hand():
    scores = calibration_scores(TRUTH, PROBABILITIES)
    # The gaps are 1 - 0.9 in one bin and 0.7 - 0.5 in another.
    assert scores["ece"] == pytest.approx((2 * 0.1 + 2 * 0.2) / 4)
    assert scores["brier"] == pytest.approx((0.01 + 0.01 + 0.09 + 0.49) / 4)
    three = [[0.5, 0.3, 0.2]]
    assert calibration_scores([1], three)["brier"] == pytest.approx(0.25 + 0.49 + 0.04)
    low, high = reliability_bins(TRUTH, PROBABILITIES, bins=10)
    assert low == pytest.approx(
        {"low": 0.6, "high": 0.7, "count": 2, "score": 0.7, "accuracy": 0.5}
    )
    assert (high["count"], high["accuracy"]) == (2, 1.0)
    perfect = calibration_scores([1], [[0.0, 1.0]])
    assert perfect == {"ece": 0.0, "ece_by_chance": 0.0, "brier": 0.0}


def test_true_scores_have_the_error_of_chance():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    probabilities = np.stack([1 - p, p], axis=1)
    drawn = [
        calibration_scores((rng.random(300) < p).astype(int), probabilities)
        for _ in range(300)
    ]
    errors = [scores["ece"] for scores in drawn]
    assert drawn[0]["ece_by_chance"] == pytest.approx(np.mean(errors), rel=0.1)


def test_each_class_of_a_text_is_a_decision():
    truth, probabilities = [[1, 0], [0, 0]], [[0.8, 0.1], [0.1, 0.1]]
    scores = calibration_scores(truth, probabilities)
    assert scores["ece"] == pytest.approx((3 * 0.1 + 0.2) / 4)
    assert scores["brier"] == pytest.approx((3 * 0.01 + 0.04) / 4)


def test_coverage_by_hand():
    rows = coverage(TRUTH, PROBABILITIES, [0.0, 0.8, 0.95])
    assert rows == [
        {"abstain": 0.0, "answered": 1.0, "accuracy": 0.75},
        {"abstain": 0.8, "answered": 0.5, "accuracy": 1.0},
        {"abstain": 0.95, "answered": 0.0, "accuracy": None},
    ]


@pytest.mark.parametrize("is_multi_label", [False, True])
def test_the_temperature_of_scaled_logits_is_found(is_multi_label):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2, size=(20_000, 3))
    if is_multi_label:
        truth = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    else:
        # The largest of logits with Gumbel noise is a draw from their softmax.
        truth = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    for scale in (0.5, 1, 3):
        assert best_temperature(logits * scale, truth) == pytest.approx(scale, rel=0.05)
        if not is_multi_label:
            true = softmax(logits, axis=1)
            found = closest_temperature(logits * scale, true)
            assert found == pytest.approx(scale, rel=1e-3)
    assert log_loss(logits * 3, truth, 3.0) == pytest.approx(log_loss(logits, truth))


def test_few_examples_leave_the_usual_temperature():
    logits = [[9.0, 0.0], [0.0, 9.0]]
    assert best_temperature(logits, [0, 1]) == pytest.approx(1.5, rel=0.01)
    # A sure mistake.
    assert 1.5 < best_temperature([*logits, *logits], [0, 1, 0, 0]) < 4
    assert best_temperature(logits, [0, 1], usual=2.5) == pytest.approx(2.5, rel=0.01)
    # The better a model learned its examples, the higher.
    assert usual_temperature(0.3) < usual_temperature(0.01) < usual_temperature(0) < 3


def test_rows_without_probabilities_are_refused():
    with pytest.raises(AlbertError, match=r"`truth` of shape \(2,\)"):
        calibration_scores([0, 1], [[0.5, 0.5]])
