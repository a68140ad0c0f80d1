"""Pairs that a few labelled texts make."""

import collections

import pytest

from albert_tf.data import contrastive_pairs

TEXTS = [
    f"{label}{i}"
    for label, count in (("a", 2), ("b", 4), ("c", 3))
    for i in range(count)
]
LABELS = [text[0] for text in TEXTS]


def test_every_text_meets_its_own_class_and_others():
    (first, second), scores = contrastive_pairs(TEXTS, LABELS, rounds=5)
    assert len(first) == len(second) == len(scores) == 2 * 5 * len(TEXTS)
    for a, b, score in zip(first, second, scores, strict=True):
        assert a != b and (a[0] == b[0]) == (score == 1)
    assert scores.mean() == 0.5
    assert set(collections.Counter(first).values()) == {10}
    # Drawn anew in each round.
    assert len({b for a, b in zip(first, second, strict=True) if a == "b0"}) > 4
    again = contrastive_pairs(TEXTS, LABELS, rounds=5)[0]
    assert again == (first, second)
    assert contrastive_pairs(TEXTS, LABELS, rounds=5, seed=1)[0] != again


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 9, "two classes at least"),
        (["a"] * 8 + ["b"], r"Found: \{'a': 8, 'b': 1\}"),
        (["a"], "9 texts, but 1 labels"),
    ],
)
def test_labels_that_make_no_pairs(labels, message):
    with pytest.raises(ValueError, match=message):
        contrastive_pairs(TEXTS, labels)
