"""Labels in the forms that users have them in."""

import numpy as np
import pytest

from albert_tf.preprocessing.labels import class_ids, multi_hot, scores

LABELS = ["体育", "财经", "娱乐"]
TEXTS = ["a", "b", "c"]


@pytest.mark.parametrize("form", [list, np.array, lambda y: np.array(y, object)])
def test_names_become_ids(form):
    y = form(["娱乐", "体育", "娱乐"])
    assert class_ids(TEXTS, y, 3, LABELS).tolist() == [2, 0, 2]


def test_ids_stay_ids_where_there_are_names():
    assert class_ids(TEXTS, [2, 0, 1], 3, LABELS).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "y",
    [
        [["娱乐", "体育"], [], ["财经"]],
        [("体育", "娱乐"), (), ("财经",)],
        [[1, 0, 1], [0, 0, 0], [0, 1, 0]],
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], bool),
    ],
)
def test_lists_of_names_and_arrays_of_0_and_1_are_the_same(y):
    hot = multi_hot(TEXTS, y, 3, LABELS)
    assert hot.dtype == "float32"
    assert hot.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("y", "labels", "message"),
    [
        (None, LABELS, "3 texts and 0 labels"),
        ([["体育"]], LABELS, "3 texts and 1 labels"),
        ([["体育"], ["汽车"], []], LABELS, r"\['汽车'\] are not among the classes"),
        (["体育", "财经", "娱乐"], LABELS, r"Element 0 of `y` is '体育': write"),
        ([["体育"], [], []], None, "Build it with `labels=`"),
        ([[0, 2], [1], []], LABELS, "with 3 columns"),
        ([[0, 2, 1]] * 3, LABELS, "an array of 0 and 1"),
        ([[0, 1]] * 3, LABELS, "with 3 columns"),
    ],
)
def test_label_lists_that_cannot_be_used(y, labels, message):
    with pytest.raises(ValueError, match=message):
        multi_hot(TEXTS, y, 3, labels)


def test_names_that_are_no_class():
    with pytest.raises(ValueError, match=r"\['汽车'\] are not among .*体育"):
        class_ids(TEXTS, ["体育", "汽车", "体育"], 3, LABELS)
    with pytest.raises(ValueError, match="`labels=` that the model was built with"):
        class_ids(TEXTS, ["体育", "财经", "体育"], 3)


def test_scores_are_finite_numbers():
    assert scores(TEXTS, [1, 2.5, "3"]).tolist() == [1, 2.5, 3]
    for y in ([1, 2, "x"], [1, 2, float("nan")], [[1], [2], [3]], [1, 2, None]):
        with pytest.raises(ValueError, match="list of finite numbers"):
            scores(TEXTS, y)
    with pytest.raises(ValueError, match="3 texts and 2 labels"):
        scores(TEXTS, [1, 2])
