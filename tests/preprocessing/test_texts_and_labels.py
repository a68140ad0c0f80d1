"""Texts and labels in the forms that users have them in, and errors for the rest."""

import numpy as np
import pytest
import tensorflow as tf
from small_classifier import VOCABULARY

from albert_tf import preprocessing as p
from albert_tf.preprocessing.texts import (
    as_segments,
    as_string_tensor,
    check_class_names,
    class_ids,
    multi_hot,
    scores,
    split_off,
    texts_in_memory,
)
from albert_tf.preprocessing.words import word_boundaries
from albert_tf.tokenizers import WordPieceTokenizer

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


def test_texts_of_a_dataset_are_strings():
    data = tf.data.Dataset.from_tensor_slices((["好", "吃吗"], ["", "a"])).batch(1)
    assert texts_in_memory(data.map(lambda *x: (x,))) == (["好", "吃吗"], ["", "a"])


def test_ids_are_split_like_texts():
    x, y = {"token_ids": np.arange(8).reshape(4, 2)}, np.arange(4)
    (train, labels, weights), (rest, last, _) = split_off(x, y, None, 0.25)
    assert train["token_ids"].tolist() == x["token_ids"][:3].tolist()
    assert (labels.tolist(), weights) == ([0, 1, 2], None)
    assert (rest["token_ids"].tolist(), last.tolist()) == ([[6, 7]], [3])


WORDS = WordPieceTokenizer(VOCABULARY)
WITHOUT_MASK = WordPieceTokenizer([x for x in VOCABULARY if x != "[MASK]"])


def choices(x):
    return p.AlbertMultipleChoicePreprocessor(WORDS)(x)


# What is wrong, in the words of the error.
MISTAKES = {
    "`inputs` should hold strings. Element 1 is 5": lambda: WORDS(["a", 5]),
    r"shape \(2, 1\). A pair of texts is the tuple": lambda: as_segments([["a"]] * 2),
    "same length. Received shapes .2,. and .1,": lambda: as_segments(
        (["a"] * 2, ["b"])
    ),
    "each of the 2 classes, each differently": lambda: check_class_names([1, "1"], 2),
    "each differently. Received 2": lambda: check_class_names(["差", "差\u200b"]),
    "one class id per text": lambda: class_ids(TEXTS, [[0, 1]] * 3, 2),
    "labels ..b.. of `y` are not among": lambda: class_ids(
        TEXTS, list("aba"), 2, list("ac")
    ),
    "array of 0 and 1 with 2 columns": lambda: multi_hot(TEXTS, [[1, 2]] * 3, 2),
    "list of finite numbers": lambda: scores(TEXTS, ["one", 2, 3]),
    "segmenter changed line 2: .ab. became .aB": lambda: word_boundaries(
        "c\nab", lambda x: [x.replace("b", "B")]
    ),
    "room for .* 5 tokens": lambda: p.SegmentPacker(1, 2, sequence_length=4),
    "above 0 and at most 1.* 1.5": lambda: p.WholeWordMaskGenerator(99, 1.5, 4, 4),
    "need a vocabulary with Chinese characters after ##": lambda: (
        p.WholeWordMaskGenerator.for_tokenizer(WORDS, marked_labels=True)
    ),
    r"has no \[MASK\], which masking needs": lambda: p.AlbertMaskedLMPreprocessor(
        WITHOUT_MASK
    )(["a"]),
    r"lists \(contexts, questions, choices\). Received: tuple of 2": lambda: choices(
        (TEXTS, TEXTS)
    ),
    "Token '鸭' is not in the vocabulary": lambda: WORDS.token_to_id("鸭"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_named(message):
    with pytest.raises((TypeError, ValueError), match=message):
        MISTAKES[message]()


def test_choices_in_a_tensor_end_at_the_last_text():
    lists = [["a", "b"], ["", "c"], ["d"]]
    whole = choices((TEXTS, TEXTS, lists))
    texts, ragged = tf.constant(TEXTS), tf.ragged.constant(lists)
    for given in (ragged, ragged.to_tensor("")):
        for name, value in choices((texts, texts, given)).items():
            np.testing.assert_array_equal(value, whole[name])
