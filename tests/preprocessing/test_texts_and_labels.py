"""Texts and labels in the forms that users have them in, and errors for the rest."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.preprocessing.texts import (
    as_segments,
    as_string_tensor,
    class_ids,
    multi_hot,
    scores,
)

TEXTS = ["很好", "", "a😀"]
BYTES = [text.encode() for text in TEXTS]
LABELS = ["体育", "财经", "娱乐"]


class Series:
    """Like a `pandas.Series`: not a list, but convertible to an array."""

    def __array__(self, dtype=None, copy=None):
        return np.array(TEXTS, dtype=object)


def test_every_form_of_texts_gives_the_same_tensor():
    arrays = np.array(TEXTS), np.array(BYTES, dtype=object), Series()
    for texts in ([TEXTS[0], *BYTES[1:]], *arrays, tf.constant(TEXTS)):
        tensor = as_string_tensor(texts)
        assert (tensor.dtype, tensor.shape) == (tf.string, (3,))
        assert tensor.numpy().tolist() == BYTES
        for segments in (as_segments(texts), as_segments((texts, TEXTS))):
            assert segments[0].numpy().tolist() == BYTES
    for text in ("很好", BYTES[0], np.str_("很好"), tf.constant("很好")):
        assert as_string_tensor(text).numpy() == BYTES[0]
    empty = as_string_tensor([])
    assert (empty.dtype, empty.shape) == (tf.string, (0,))


def test_names_and_ids_of_classes():
    for form in (list, np.array, lambda y: np.array(y, object)):
        y = form(["娱乐", "体育", "娱乐"])
        assert class_ids(TEXTS, y, 3, LABELS).tolist() == [2, 0, 2]
    assert class_ids(TEXTS, [2, 0, 1], 3, LABELS).tolist() == [2, 0, 1]
    names, expected = [["娱乐", "体育"], [], ["财经"]], [[1, 0, 1], [0] * 3, [0, 1, 0]]
    for y in (names, expected, np.array(expected, bool)):
        hot = multi_hot(TEXTS, y, 3, LABELS)
        assert hot.dtype == "float32"
        assert hot.tolist() == expected
    assert scores(TEXTS, [1, 2.5, "3"]).tolist() == [1, 2.5, 3]


@pytest.mark.parametrize(
    ("function", "arguments", "error", "message"),
    [
        (as_string_tensor, [["a", "a", None]], TypeError, "Element 2 is None"),
        (as_segments, [(["a"], [None])], TypeError, r"`x\[1\]` .* Element 0 is None"),
        (as_segments, [[("a", "b")] * 3], ValueError, r"\(3, 2\).*tuple of two lists"),
        (as_segments, [(["a"], ["c", "d"])], ValueError, r"shapes \(1,\) and \(2,\)"),
        (class_ids, [TEXTS, ["汽车"] * 3, 3, LABELS], ValueError, "汽车.* not among"),
        (class_ids, [TEXTS, LABELS, 3], ValueError, "`labels=` that the model"),
        (multi_hot, [TEXTS, [LABELS], 3, LABELS], ValueError, "3 texts and 1 labels"),
        (multi_hot, [TEXTS, LABELS, 3, LABELS], ValueError, "list of class names per"),
        (multi_hot, [TEXTS, [LABELS] * 3, 3], ValueError, "a model with `labels=`"),
        (multi_hot, [TEXTS, [[0, 2, 1]] * 3, 3], ValueError, "an array of 0 and 1"),
        (scores, [TEXTS, [1, 2, None]], ValueError, "list of finite numbers"),
        (scores, [TEXTS, [[1], [2], [3]]], ValueError, "list of finite numbers"),
    ],
)
def test_wrong_texts_and_labels_are_named(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(*arguments)
