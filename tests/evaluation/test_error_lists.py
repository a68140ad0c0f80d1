"""The examples that an error report lists, against cases done by hand."""

import numpy as np
import pytest
import scipy.sparse

from albert_tf.evaluation import (
    character_features,
    suspicious_labels,
    worst_mistakes,
)
from albert_tf.evaluation.report import (
    worst_entity_mistakes,
    worst_multi_label_mistakes,
)


def test_mistakes_by_hand():
    probabilities = [[0.9, 0.1, 0], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3], [0, 0, 1]]
    found = worst_mistakes(probabilities, [1, 1, 0, 0])
    assert [row["index"] for row in found] == [3, 0, 2]
    assert found[1] == {
        "index": 0,
        "label_id": 1,
        "predicted_id": 0,
        "label_probability": 0.1,
        "predicted_probability": 0.9,
    }
    assert len(worst_mistakes(probabilities, [1, 1, 0, 0], count=2)) == 2
    assert worst_mistakes(np.zeros((0, 2)), np.zeros(0, int)) == []


def test_mistakes_of_label_lists_by_hand():
    probabilities = [[0.9, 0.6], [0.4, 0.1], [0.2, 0.1]]
    truth, chosen = [[1, 0], [1, 1], [0, 0]], [[1, 1], [0, 0], [0, 0]]
    arrays = map(np.array, (probabilities, truth, chosen))
    found = worst_multi_label_mistakes(*arrays)
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
        assert row["predicted_id"] == truth[row["index"]]
        assert row["label_id"] == labels[row["index"]]
    fewer = suspicious_labels(form(features), labels, count=3)
    assert [row["index"] for row in fewer] == indices[:3]


def test_characters_show_a_wrong_label():
    kinds, labels = ["好吃的菜", "坏了的表", "很远的店"], np.arange(60) % 3
    texts = [f"{kinds[label]}{'啊' * (i % 4)}" for i, label in enumerate(labels)]
    labels[[4, 33]] = 2
    found = suspicious_labels(character_features(texts), labels)
    assert {row["index"] for row in found[:2]} == {4, 33}
    # Single characters and pairs.
    assert character_features(["好吃", "好"]).shape == (2, 3)


def test_logits_are_not_probabilities():
    with pytest.raises(ValueError, match="should sum to 1"):
        worst_mistakes([[2.0, -1.5]], [0])
