"""Scores of entities, counted by hand."""

import pytest

from albert_tf.evaluation import entity_scores

pytest.importorskip("seqeval", reason="seqeval is not installed")


def test_counted_by_hand():
    truth = [
        [(0, 2, "PER"), (3, 5, "LOC")],
        [(0, 1, "PER"), (1, 2, "PER")],
        [],
        [(2, 9, "ORG")],
    ]
    predicted = [
        # One right, one with another end.
        [(0, 2, "PER"), (3, 6, "LOC")],
        # Two neighbours found as one.
        [(0, 2, "PER")],
        # Where there is none.
        [(4, 5, "LOC")],
        # With another label.
        [(2, 9, "GPE")],
    ]
    scores = entity_scores(truth, predicted)
    assert scores["precision"] == pytest.approx(1 / 5)
    assert scores["recall"] == pytest.approx(1 / 5)
    assert scores["f1"] == pytest.approx(1 / 5)
    assert scores["count"] == 5
    types = scores["types"]
    assert list(types) == ["GPE", "LOC", "ORG", "PER"]
    assert types["PER"] == pytest.approx(
        {"precision": 1 / 2, "recall": 1 / 3, "f1": 2 / 5, "count": 3}
    )
    assert types["LOC"] == {"precision": 0, "recall": 0, "f1": 0, "count": 1}
    assert types["GPE"]["count"] == 0


def test_all_right_nothing_and_unequal_lists():
    spans = [[(0, 1, "PER"), (1, 3, "PER")], []]
    assert entity_scores(spans, spans)["f1"] == 1.0
    assert entity_scores([[], []], [[], []])["f1"] == 0.0
    assert entity_scores(spans, [[], []])["recall"] == 0.0
    with pytest.raises(ValueError, match="Received 2 and 1"):
        entity_scores(spans, [[]])
