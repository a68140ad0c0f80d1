"""Texts and labels in the forms that users have them in, and errors for the rest."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.preprocessing.examples import class_ids, multi_hot, scores
from albert_tf.preprocessing.texts import as_segments, as_string_tensor

TEXTS = ["很好", "", "a😀"]
BYTES = [text.encode() for text in TEXTS]
LABELS = ["体育", "财经", "娱乐"]
MIXED = np.array(["a", "a", None], dtype=object)


class Series:
    """Like a `pandas.Series`: not a list, but convertible to an array."""

    def __array__(self, dtype=None, copy=None):
        return np.array(TEXTS, dtype=object)


# === Texts ===


def test_every_kind_of_list_gives_the_same_tensor():
    for texts in (
        [TEXTS[0], BYTES[1], TEXTS[2]],
        np.array(TEXTS),
        np.array(BYTES, dtype=object),
        list(np.array(TEXTS)),
        Series(),
        tf.constant(TEXTS),
    ):
        tensor = as_string_tensor(texts)
        assert (tensor.dtype, tensor.shape) == (tf.string, (3,))
        assert tensor.numpy().tolist() == BYTES
    for text in ("很好", BYTES[0], np.str_("很好"), tf.constant("很好")):
        assert as_string_tensor(text).numpy() == BYTES[0]
    empty = as_string_tensor([])
    assert (empty.dtype, empty.shape) == (tf.string, (0,))


def test_half_of_a_surrogate_pair_is_dropped():
    given = as_string_tensor(["好\ud800吗", "\udfff"]).numpy().tolist()
    assert given == ["好吗".encode(), b""]


def test_a_tuple_of_two_lists_is_a_pair():
    for x in (TEXTS, (TEXTS,)):
        assert [part.numpy().tolist() for part in as_segments(x)] == [BYTES]
    first, second = as_segments((TEXTS, np.array(["x", "y", "z"])))
    assert first.numpy().tolist() == BYTES
    assert second.numpy().tolist() == [b"x", b"y", b"z"]


@pytest.mark.parametrize(
    ("function", "x", "error", "message"),
    [
        (as_string_tensor, list(MIXED), TypeError, "Element 2 is None"),
        (as_segments, (["a"], [None]), TypeError, r"`x\[1\]` .* Element 0 is None"),
        (as_segments, [("a", "b")] * 3, ValueError, r"\(3, 2\).*tuple of two lists"),
        (as_segments, (["a"], ["c", "d"]), ValueError, r"shapes \(1,\) and \(2,\)"),
    ],
)
def test_wrong_texts_are_named(function, x, error, message):
    with pytest.raises(error, match=message):
        function(x)


# === Labels ===


def test_names_and_ids_of_classes():
    for form in (list, np.array, lambda y: np.array(y, object)):
        y = form(["娱乐", "体育", "娱乐"])
        assert class_ids(TEXTS, y, 3, LABELS).tolist() == [2, 0, 2]
    assert class_ids(TEXTS, [2, 0, 1], 3, LABELS).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "y",
    [
        [["娱乐", "体育"], [], ["财经"]],
        [[1, 0, 1], [0, 0, 0], [0, 1, 0]],
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], bool),
    ],
)
def test_several_classes_per_text_as_names_or_as_0_and_1(y):
    hot = multi_hot(TEXTS, y, 3, LABELS)
    assert hot.dtype == "float32"
    assert hot.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("function", "y", "labels", "message"),
    [
        (class_ids, ["体育", "汽车", "体育"], LABELS, r"\['汽车'\] are not among"),
        (class_ids, ["体育", "财经", "体育"], None, "`labels=` that the model"),
        (multi_hot, [["体育"]], LABELS, "3 texts and 1 labels"),
        (multi_hot, ["体育", "财经", "娱乐"], LABELS, r"Element 0 of `y` is '体育'"),
        (multi_hot, [["体育"], [], []], None, "Build it with `labels=`"),
        (multi_hot, [[0, 2, 1]] * 3, LABELS, "an array of 0 and 1"),
    ],
)
def test_wrong_labels_are_named(function, y, labels, message):
    with pytest.raises(ValueError, match=message):
        function(TEXTS, y, 3, labels)


def test_scores_are_finite_numbers():
    assert scores(TEXTS, [1, 2.5, "3"]).tolist() == [1, 2.5, 3]
    for y in ([1, 2, "x"], [1, 2, float("nan")], [[1], [2], [3]], [1, 2, None]):
        with pytest.raises(ValueError, match="list of finite numbers"):
            scores(TEXTS, y)
