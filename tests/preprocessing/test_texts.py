"""Texts and labels in the forms that users have them in, and errors for the rest."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MultiLabelBinarizer
from small_classifier import VOCABULARY

from albert_tf import preprocessing as p
from albert_tf.preprocessing.texts import as_segments, as_string_tensor
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.trainers.examples import read_examples
from albert_tf.trainers.labels import (
    check_class_names,
    class_ids,
    dataset_targets,
    multi_hot,
    scores,
)
from albert_tf_lite.words import word_boundaries

TEXTS = ["很好", "", "a😀"]
BYTES = [text.encode() for text in TEXTS]
LABELS = ["体育", "财经", "娱乐"]


def test_every_form_of_texts_gives_the_same_tensor():
    arrays = np.array(TEXTS), np.array(BYTES, dtype=object), pd.Series(TEXTS)
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


# Strings, integers, floats, bools, or some of each.
kinds = st.text("差评好", min_size=1), st.integers(-3, 9), st.floats(-2, 2, width=16)
some_labels = st.one_of(
    *(st.lists(kind, min_size=2, max_size=5, unique=True) for kind in kinds),
    *map(st.permutations, ([True, False], ["差", 1, 0.5])),
)


@settings(max_examples=40)
@given(st.data())
def test_labels_are_found_by_value_as_in_scikit_learn(data):
    labels = data.draw(some_labels)
    y = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=9))
    rows = [[x] for x in y]
    expected = MultiLabelBinarizer(classes=labels).fit_transform(rows)
    names = check_class_names(labels, len(labels))
    forms = [y, np.array(y, object), pd.Series(y, index=range(len(y))[::-1])]
    kinds = {*map(type, labels)}
    forms += [np.array(y), pd.Categorical(y)] if len(kinds) == 1 else []
    forms += [list(map(str, y))]
    for form in forms:
        ids = class_ids(y, form, len(labels), names)
        assert ids.tolist() == expected.argmax(axis=1).tolist()
    hot = multi_hot(y, [[str(x)] for x in y], len(labels), names)
    assert hot.dtype == "float32" and hot.tolist() == expected.tolist()
    if len(kinds) == 1:
        dataset = tf.data.Dataset.from_tensor_slices((y, y)).batch(4)
        batches = dataset_targets(dataset, names)
        assert [x for _, ids in batches for x in ids.numpy()] == ids.tolist()


def test_ids_and_rows_of_0_and_1():
    assert class_ids(TEXTS, [2.0, 0, True], 3, LABELS).tolist() == [2, 0, 1]
    assert class_ids(TEXTS, [[1], [0], [1]], 2, ["0", "1"]).tolist() == [1, 0, 1]
    expected = [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    forms = expected, np.array(expected, bool), scipy.sparse.csr_array(expected)
    names = [["娱乐", "体育"], [], ["财经"]]
    for y in (*forms, names, pd.Series(names)):
        assert multi_hot(TEXTS, y, 3, LABELS).tolist() == expected
    batch = tf.ragged.constant(names)
    for y in (batch, batch.to_tensor("")):
        dataset = tf.data.Dataset.from_tensors((TEXTS, y))
        ((_, hot),) = dataset_targets(dataset, LABELS, several=True)
        assert hot.numpy().tolist() == expected
    assert scores(TEXTS, [1, 2.5, "3"]).tolist() == [1, 2.5, 3]


def test_texts_of_a_dataset_are_strings():
    data = tf.data.Dataset.from_tensor_slices((["好", "吃吗"], ["", "a"])).batch(1)
    examples = read_examples(data.map(lambda *x: (x,)))
    assert (examples.kind, examples.is_pair, examples.count) == ("dataset", True, None)
    examples = examples.in_memory()
    assert examples.x == (["好", "吃吗"], ["", "a"]) and examples.count == 2


def test_ids_are_split_like_texts():
    x, y = {"token_ids": np.arange(8).reshape(4, 2)}, np.arange(4)
    train, rest = read_examples(x, y).split_off(0.25)
    assert train.x["token_ids"].tolist() == x["token_ids"][:3].tolist()
    assert (train.y.tolist(), train.sample_weight) == ([0, 1, 2], None)
    assert (rest.x["token_ids"].tolist(), rest.y.tolist()) == ([[6, 7]], [3])
    assert (rest.kind, rest.is_pair, rest.count) == ("ids", None, 1)


WORDS = WordPieceTokenizer(VOCABULARY)
WITHOUT_MASK = p.AlbertMaskedLMPreprocessor(
    WordPieceTokenizer([x for x in VOCABULARY if x != "[MASK]"])
)


def choices(x):
    return p.AlbertMultipleChoicePreprocessor(WORDS)(x)


def targets(y, names):
    return list(dataset_targets(tf.data.Dataset.from_tensors((TEXTS, y)), names))


def segmented(text):
    return word_boundaries(text, lambda x: [x.replace("b", "B")])


def marked_labels(tokenizer):
    return p.WholeWordMaskGenerator.for_tokenizer(tokenizer, marked_labels=True)


BOOLEANS, MISSING = ["True", "False"], pd.array([1, 0, None])
# What is wrong, in the words of the error, of a function and its arguments.
MISTAKES = [
    ("`inputs` should hold strings. Element 1 is 5", WORDS, ["a", 5]),
    (r"shape \(2, 1\). A pair of texts is the tuple", as_segments, [["a"]] * 2),
    ("same length. Received shapes .2,. and .1,", as_segments, (["a"] * 2, ["b"])),
    ("each of the 2 classes, each differently", check_class_names, [1, "1"], 2),
    ("each differently. Received 2", check_class_names, ["差", "差\u200b"]),
    ("1 is '1' by its name, and '0'", class_ids, TEXTS, [1, 0, 1], 2, [*"10"]),
    ("1 is none of them by its name, and '7'", class_ids, TEXTS, [1, 0, 1], 2, [*"27"]),
    ("True is 'True' by its name, and 'Fal", class_ids, TEXTS, [True] * 3, 2, BOOLEANS),
    ("the classes are named ..2., .1..: 2", targets, [0, 1, 0], ["2", "1"]),
    ("not all among the classes", targets, [0, 1, 4], [1, 0]),
    ("labels .2. of `y` are not among", class_ids, TEXTS, [0, 1, 2], 2, [1, 0]),
    ("`y` has two readings", multi_hot, TEXTS, [[1, 0]] * 3, 2, [1, 0]),
    ("Element 2 of `y` is missing: <NA>", class_ids, TEXTS, MISSING, 2, ["差", "好"]),
    ("Element 1 of `y` is missing: nan", scores, TEXTS, [1, np.nan, 2]),
    ("Element 1 is 0.5", class_ids, TEXTS, [1, 0.5, 0], 2),
    ("one class id per text", class_ids, TEXTS, [[0, 1]] * 3, 2),
    ("labels ..b.. of `y` are not among", class_ids, TEXTS, [*"aba"], 2, [*"ac"]),
    ("array of 0 and 1 with 2 columns", multi_hot, TEXTS, [[1, 2]] * 3, 2),
    ("list of finite numbers", scores, TEXTS, ["one", 2, 3]),
    ("segmenter changed line 2: .ab. became .aB", segmented, "c\nab"),
    ("`sequence_length` must be an integer, at least 5", p.SegmentPacker, 1, 2, 0, 4),
    ("above 0 and at most 1.* 1.5", p.WholeWordMaskGenerator, 99, 1.5, 4, 4),
    ("vocabulary with Chinese characters after ##", marked_labels, WORDS),
    (r"has no \[MASK\], which masking needs", WITHOUT_MASK, ["a"]),
    (r"questions, choices\). Received: tuple of 2", choices, (TEXTS, TEXTS)),
    ("Token '鸭' is not in the vocabulary", WORDS.token_to_id, "鸭"),
]


@pytest.mark.parametrize("row", MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_is_named(row):
    message, function, *given = row
    # TensorFlow's is the error of a dataset.
    errors = TypeError, ValueError, tf.errors.InvalidArgumentError
    with pytest.raises(errors, match=message):
        function(*given)


def test_choices_in_a_tensor_end_at_the_last_text():
    lists = [["a", "b"], ["", "c"], ["d"]]
    whole = choices((TEXTS, TEXTS, lists))
    texts, ragged = tf.constant(TEXTS), tf.ragged.constant(lists)
    for tensor in (ragged, ragged.to_tensor("")):
        for name, value in choices((texts, texts, tensor)).items():
            np.testing.assert_array_equal(value, whole[name])
