"""Which examples an error report lists, against cases done by hand."""

import numpy as np
import pytest
import scipy.sparse

from albert_tf.evaluation import (
    character_features,
    confident_issues,
    cross_validated,
    suspicious_labels,
    worst_entity_mistakes,
    worst_mistakes,
    worst_multi_label_mistakes,
)


def test_mistakes_by_hand():
    probabilities = [[0.9, 0.1, 0], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3], [0, 0, 1]]
    found = worst_mistakes(probabilities, [1, 1, 0, 0])
    assert [row["index"] for row in found] == [3, 0, 2]
    assert found[1] == pytest.approx(
        {
            "index": 0,
            "label_id": 1,
            "predicted_id": 0,
            "label_probability": 0.1,
            "predicted_probability": 0.9,
            "loss": np.log(10),
        }
    )
    # Impossible, but the loss is a number.
    assert found[0]["loss"] == pytest.approx(12 * np.log(10))
    assert len(worst_mistakes(probabilities, [1, 1, 0, 0], count=2)) == 2
    assert worst_mistakes(np.zeros((0, 2)), np.zeros(0, int)) == []


def test_mistakes_of_label_lists_by_hand():
    probabilities = [[0.9, 0.6], [0.4, 0.1], [0.2, 0.1]]
    truth, chosen = [[1, 0], [1, 1], [0, 0]], [[1, 1], [0, 0], [0, 0]]
    found = worst_multi_label_mistakes(probabilities, truth, chosen)
    assert [row["index"] for row in found] == [1, 0]
    assert found[0]["missed"] == {0: 0.4, 1: 0.1} and found[0]["wrong"] == {}
    assert found[0]["loss"] == pytest.approx(-np.log(0.4 * 0.1))
    assert found[1]["wrong"] == {1: 0.6}
    assert found[1]["loss"] == pytest.approx(-np.log(0.9 * 0.4))


def test_mistakes_of_entities_by_hand():
    truth = [[(0, 2, "PER")], [(0, 1, "LOC"), (3, 5, "ORG")], [(1, 2, "PER")]]
    predicted = [
        [(0, 2, "PER", 0.9)],
        [(0, 1, "PER", 0.75), (3, 5, "ORG", 0.5)],
        [(1, 2, "PER", 0.5), (4, 5, "LOC", 0.25)],
    ]
    first, second = worst_entity_mistakes(truth, predicted)
    assert first == {
        "index": 1,
        "missed": [(0, 1, "LOC")],
        "wrong": [(0, 1, "PER", 0.75)],
        "loss": 1.75,
    }
    assert second["index"] == 2 and second["missed"] == [] and second["loss"] == 0.25


def test_confident_learning_by_hand():
    # Thresholds, the mean of a class's own examples: 0.6 and 0.65.
    probabilities = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]]
    truth = [0, 0, 0, 1, 1]
    (found,) = confident_issues(probabilities, truth)
    assert (found["index"], found["suggested_id"]) == (1, 1)
    assert found["loss"] == pytest.approx(-np.log(0.3))
    # 0.6 is below what class 1 has on average, 0.62: not confident.
    probabilities[1], probabilities[4] = [0.4, 0.6], [0.36, 0.64]
    assert confident_issues(probabilities, truth) == []
    # An example that was not judged does not shift the others.
    probabilities = [[np.nan, np.nan], [0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.35, 0.65]]
    (found,) = confident_issues(probabilities, [1, 0, 0, 0, 1])
    assert found["index"] == 2


def clusters(seed=0, sizes=(60, 60, 60)):
    """Points around three centres, and which."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    centres = rng.normal(0, 3, (len(sizes), 8))
    return centres[truth] + rng.normal(0, 1, (len(truth), 8)), truth


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_labels_that_were_exchanged_are_found(form):
    features, truth = clusters()
    exchanged = np.random.default_rng(1).choice(len(truth), 12, replace=False)
    labels = truth.copy()
    labels[exchanged] = (labels[exchanged] + 1) % 3
    found = suspicious_labels(form(features), labels)
    indices = [row["index"] for row in found]
    # By chance less than one.
    assert len(set(indices[:12]) & set(exchanged)) >= 8
    for row in found[:8]:
        assert row["suggested_id"] == truth[row["index"]]
    fewer = suspicious_labels(form(features), labels, count=3)
    assert [row["index"] for row in fewer] == indices[:3]


def test_no_example_judges_itself():
    """A model that had seen random labels would predict some of them."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 59)), rng.integers(0, 2, 60)
    probabilities = cross_validated(features, labels)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(60))
    assert (probabilities.argmax(axis=1) == labels).mean() < 0.7


def test_characters_show_a_wrong_label():
    kinds, labels = ["好吃的菜", "坏了的表", "很远的店"], np.arange(60) % 3
    texts = [f"{kinds[label]}{'啊' * (i % 4)}" for i, label in enumerate(labels)]
    labels[[4, 33]] = 2
    found = suspicious_labels(character_features(texts), labels)
    assert {row["index"] for row in found[:2]} == {4, 33}
    # Single characters and pairs.
    assert character_features(["好吃", "好"]).shape == (2, 3)


def test_classes_too_small_to_judge():
    features, labels = clusters(sizes=(9, 3, 1))
    probabilities = cross_validated(features, labels)
    assert np.isnan(probabilities[-1]).all() and not np.isnan(probabilities[:-1]).any()
    with pytest.raises(ValueError, match="Two classes at least"):
        suspicious_labels(features, np.repeat([0, 1], [12, 1]))


def test_arrays_that_do_not_fit_are_named():
    for call, message in (
        (lambda: worst_mistakes([[2.0, -1.0]], [0]), "should sum to 1"),
        (lambda: worst_mistakes([0.5, 0.5], [0]), r"shape \[examples, classes\]"),
        (lambda: worst_mistakes([[0.5, 0.5]], [0, 1]), "each of the 1 examples"),
        (lambda: worst_mistakes([[0.5, 0.5]], [2]), "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
