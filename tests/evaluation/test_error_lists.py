"""Which examples an error report lists, against cases done by hand."""

import numpy as np
import pytest
import scipy.sparse

from albert_tf.evaluation import (
    character_features,
    confident_issues,
    cross_validated,
    next_to_label,
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
    # It is not judged, and moves the others up in no way.
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


def test_no_example_speaks_for_itself():
    """Of labels drawn at random, a model that had seen them would know some."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 59)), rng.integers(0, 2, 60)
    probabilities = cross_validated(features, labels)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(60))
    assert (probabilities.argmax(axis=1) == labels).mean() < 0.7


def test_features_that_are_nearly_the_same():
    """As the pooled outputs of a model that was hardly trained."""
    features, truth = clusters()
    labels = truth.copy()
    labels[[3, 70]] = 2
    found = suspicious_labels(0.9 + 1e-5 * features, labels, count=2)
    assert {row["index"] for row in found} == {3, 70}


def test_features_of_characters():
    kinds, labels = ["好吃的菜", "坏了的表", "很远的店"], np.arange(60) % 3
    texts = [f"{kinds[label]}{'啊' * (i % 4)}" for i, label in enumerate(labels)]
    labels[[4, 33]] = 2
    found = suspicious_labels(character_features(texts), labels)
    assert {row["index"] for row in found[:2]} == {4, 33}
    # Single characters and pairs.
    assert character_features(["好吃", "好"]).shape == (2, 3)


def test_small_classes():
    features, labels = clusters(sizes=(9, 3, 1))
    probabilities = cross_validated(features, labels)
    assert np.isnan(probabilities[-1]).all() and not np.isnan(probabilities[:-1]).any()
    assert all(row["index"] < 12 for row in suspicious_labels(features, labels))
    with pytest.raises(ValueError, match="Two classes at least"):
        suspicious_labels(features, np.repeat([0, 1], [12, 1]))


def test_what_to_label_is_uncertain_and_unlike():
    features, group = clusters(sizes=(40, 40, 40))
    # The first two groups are uncertain, the first a little more; the third is not.
    certain = 0.55 + 0.003 * (np.arange(120) % 40) + 0.01 * group
    certain[group == 2] = 0.99
    probabilities = np.stack([certain, 1 - certain], axis=1)
    found = next_to_label(probabilities, features, count=2)
    assert sorted(group[row["index"]] for row in found) == [0, 1]
    entropies = [row["entropy"] for row in found]
    assert entropies == sorted(entropies, reverse=True)
    p = certain[found[0]["index"]]
    by_hand = -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert found[0]["entropy"] == pytest.approx(by_hand)
    assert found[0]["predicted_probability"] == p
    # The most uncertain alone are all of one group.
    assert (group[np.argsort(certain)[:2]] == 0).all()


def test_what_to_label_of_few_and_of_equal_texts():
    probabilities, features = np.full((6, 2), 0.5), np.eye(3)[[0, 0, 1, 1, 2, 2]]
    found = next_to_label(probabilities, features, count=5)
    assert len({features[row["index"]].argmax() for row in found}) == len(found) == 3
    # Without any doubt, too.
    assert len(next_to_label(np.eye(2)[[0, 1, 0]], np.eye(3), count=3)) == 3
    assert next_to_label(np.zeros((0, 2)), np.zeros((0, 3))) == []


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda: worst_mistakes([[2.0, -1.0]], [0]), "should sum to 1"),
        (lambda: worst_mistakes([0.5, 0.5], [0]), r"shape \[examples, classes\]"),
        (lambda: worst_mistakes([[0.5, 0.5]], [0, 1]), "each of the 1 examples"),
        (lambda: worst_mistakes([[0.5, 0.5]], [2]), "between 0 and 1"),
        (lambda: worst_mistakes([[0.5, 0.5]], ["a"]), "should be ints"),
        (lambda: next_to_label([[0.5, 0.5]], np.ones((2, 3))), "row for each of the 1"),
        (
            lambda: worst_multi_label_mistakes([[0.5]], [[1, 0]], [[1]]),
            "should have the shape",
        ),
    ],
)
def test_what_does_not_fit(call, match):
    with pytest.raises(ValueError, match=match):
        call()
