"""Texts and labels in the forms that users have them in, and errors for the rest."""

import numpy as np
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
