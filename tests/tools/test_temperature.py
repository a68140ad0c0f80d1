"""The temperature of every task that has one."""

import dataclasses

import numpy as np
import pytest
from small_classifier import TEXTS, small_classifier
from task_cases import CASES

from albert_tf.tools import tune_temperature
from albert_tf_lite.errors import AlbertError

pairs = CASES["pair classifier"]
TASKS = {
    **{name: CASES[name] for name in ("text classifier", "early-exit classifier")},
    "pair classifier": dataclasses.replace(
        pairs, init_kwargs={**pairs.init_kwargs, "activation": None}
    ),
    **{name: CASES[name] for name in ("multi-label classifier", "token classifier")},
}


@pytest.fixture(scope="module", params=TASKS.values(), ids=TASKS.keys())
def case(request):
    return request.param


def labels_and_scores(task, x):
    """The answers of a task without their scores, and the scores."""
    rows = [one if isinstance(one, list) else [one] for one in task.answers(x)]
    labels = [[{**one, "score": None} for one in row] for row in rows]
    return labels, np.array([one["score"] for row in rows for one in row])


def test_scores_change_and_labels_stay(case):
    task = case.build(num_layers=1)
    if hasattr(task, "thresholds"):
        task.thresholds = None
    task.temperature = 1.0
    labels, scores = labels_and_scores(task, case.x)
    logits = task.predict_rows(case.x, verbose=0).outputs
    for temperature in (0.5, 3.0):
        task.temperature = temperature
        again, others = labels_and_scores(task, case.x)
        assert again == labels
        # A higher temperature makes answers less sure.
        assert (others.mean() < scores.mean()) == (temperature > 1)
        assert np.abs(others - scores).min() > 1e-5
    # What `predict` is made of stays logits.
    for first, second in zip(
        task.predict_rows(case.x, verbose=0).outputs, logits, strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_a_tuned_temperature_lowers_the_log_loss_and_keeps_labels(case):
    task = case.build(num_layers=1)
    x = tuple(part * 3 for part in case.x) if isinstance(case.x, tuple) else case.x * 3
    y = [*case.y] * 3
    labels, _ = labels_and_scores(task, case.x)
    tune_temperature(task, x, y)
    # Random weights are too sure.
    assert task.temperature > 1.2
    again, _ = labels_and_scores(task, case.x)
    assert again == labels
    with pytest.warns(UserWarning, match="7 examples are too few"):
        tune_temperature(task, case.x, case.y)
    assert task.temperature == 1.0


def test_a_model_without_logits_has_no_temperature():
    classifier = small_classifier(activation="softmax")
    with pytest.raises(AlbertError, match="its own `activation`"):
        classifier.temperature = 2.0
    with pytest.raises(AlbertError, match="that returns logits"):
        tune_temperature(classifier, TEXTS, [0] * len(TEXTS))
    for wrong in (0, -1.0, float("inf"), float("nan"), "2", True):
        with pytest.raises(AlbertError, match="`temperature` must be a positive"):
            small_classifier(temperature=wrong)
