"""The scores of SIGHAN, by hand."""

import pytest

from albert_tf.evaluation import spelling_scores

# source, target, predicted
RIGHT = ("我再家", "我在家", "我在家")
WRONG_CHARACTER = ("我再家", "我在家", "我载家")
WRONG_PLACE = ("我再家", "我在家", "他再家")
ONE_TOO_MANY = ("我再家", "我在家", "他在家")
MISSED = ("我再家", "我在家", "我再家")
UNTOUCHED = ("很好", "很好", "很好")
SPOILED = ("很好", "很好", "很号")


def scores(*rows):
    return spelling_scores(*zip(*rows, strict=True))


def test_scores_by_hand():
    given = scores(
        *(RIGHT, WRONG_CHARACTER, WRONG_PLACE, ONE_TOO_MANY, MISSED),
        *(UNTOUCHED, UNTOUCHED, SPOILED),
    )
    # Of 5 sentences with errors two are found, one is put right; of 3 others one is
    # changed.
    assert given == pytest.approx(
        {
            "detection_accuracy": 4 / 8,
            "detection_precision": 2 / 3,
            "detection_recall": 2 / 5,
            "detection_f1": 0.5,
            "correction_accuracy": 3 / 8,
            "correction_precision": 1 / 2,
            "correction_recall": 1 / 5,
            "correction_f1": 2 / 7,
            "false_positive_rate": 1 / 3,
        }
    )


def test_scores_of_doing_nothing():
    given = scores(MISSED, UNTOUCHED)
    assert given["correction_f1"] == given["false_positive_rate"] == 0
    assert given["correction_accuracy"] == 0.5


def test_texts_that_do_not_fit():
    with pytest.raises(ValueError, match="texts 1 differ in length"):
        scores(RIGHT, ("好", "好吃", "好"))
    with pytest.raises(ValueError, match="Received 1, 1 and 2"):
        spelling_scores(["好"], ["好"], ["好", "好"])
