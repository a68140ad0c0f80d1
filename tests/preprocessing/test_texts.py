"""What may be passed as text, and what is said about the rest."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.preprocessing.texts import as_segments, as_string_tensor

TEXTS = ["很好", "", "a😀"]
BYTES = [text.encode() for text in TEXTS]


class Series:
    """Like a `pandas.Series`: no list, but it can become an array."""

    def __array__(self, dtype=None, copy=None):
        return np.array(TEXTS, dtype=object)


@pytest.mark.parametrize(
    "texts",
    [
        [TEXTS[0], BYTES[1], TEXTS[2]],
        np.array(TEXTS),
        np.array(BYTES, dtype=object),
        list(np.array(TEXTS)),
        Series(),
        tf.constant(TEXTS),
    ],
    ids=["list", "array", "object array", "NumPy strings", "series", "tensor"],
)
def test_every_kind_of_list_gives_the_same_tensor(texts):
    tensor = as_string_tensor(texts)
    assert tensor.dtype == tf.string
    assert tensor.shape == (3,)
    assert tensor.numpy().tolist() == BYTES


def test_single_string_gives_a_scalar():
    for text in ("很好", "很好".encode(), np.str_("很好"), tf.constant("很好")):
        tensor = as_string_tensor(text)
        assert tensor.shape == ()
        assert tensor.numpy().decode() == "很好"


def test_empty_list_is_a_batch_of_no_strings():
    tensor = as_string_tensor([])
    assert (tensor.dtype, tensor.shape) == (tf.string, (0,))


def test_bytes_that_are_no_text():
    """Half of a surrogate pair is left out, other bytes are the tokenizer's."""
    assert as_string_tensor(["好\ud800吗", "\udfff"]).numpy().tolist() == [
        "好吗".encode(),
        b"",
    ]
    assert as_string_tensor([b"ok\xff\xfe"]).numpy().tolist() == [b"ok\xff\xfe"]


@pytest.mark.parametrize("wrong", [None, 1.5, ["b"]])
def test_element_that_is_no_string_is_named_by_position(wrong):
    texts = np.empty(3, dtype=object)
    texts[:] = "a"
    texts[2] = wrong
    with pytest.raises(TypeError) as error:
        as_string_tensor(list(texts))
    assert "Element 2 is" in str(error.value)
    assert type(wrong).__name__ in str(error.value)


def test_wrong_element_of_a_pair_names_the_half():
    with pytest.raises(TypeError, match=r"`x\[1\]` .* Element 1 is None"):
        as_segments((["a", "b"], ["c", None]))


def test_numbers_are_refused():
    with pytest.raises(TypeError, match="Element 0 is 1"):
        as_string_tensor(np.array([1, 2]))
    with pytest.raises(TypeError, match="int32"):
        as_string_tensor(tf.constant([1, 2]))


def test_list_of_pairs_is_told_to_be_a_pair_of_lists():
    for pairs in ([("a", "b"), ("c", "d"), ("e", "f")], tf.constant([["a", "b"]] * 3)):
        with pytest.raises(ValueError, match=r"\(3, 2\).*tuple of two lists"):
            as_segments(pairs)


def test_texts_are_one_segment():
    for x in (TEXTS, (TEXTS,), tf.constant(TEXTS)):
        (segment,) = as_segments(x)
        assert segment.numpy().tolist() == BYTES


def test_pair_of_lists_is_two_segments():
    first, second = as_segments((TEXTS, np.array(["x", "y", "z"])))
    assert first.numpy().tolist() == BYTES
    assert second.numpy().tolist() == [b"x", b"y", b"z"]


def test_pair_of_strings_is_two_scalars():
    first, second = as_segments(("你好".encode(), "再见"))
    assert (first.shape, second.shape) == ((), ())
    assert (first.numpy().decode(), second.numpy().decode()) == ("你好", "再见")


def test_tuple_of_neither_one_nor_two_is_refused():
    for count in (0, 3):
        with pytest.raises(ValueError, match=f"Received a tuple of {count}"):
            as_segments((["a"],) * count)


def test_pair_of_unequal_lengths_is_refused_with_both():
    with pytest.raises(ValueError, match=r"Received shapes \(2,\) and \(3,\)"):
        as_segments((["a", "b"], ["c", "d", "e"]))
    with pytest.raises(ValueError, match="same length"):
        as_segments(("a", ["b", "c"]))


def test_tensors_of_unknown_length_pass_inside_a_function():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2)
    def joined(first, second):
        return tf.strings.join(as_segments((first, second)))

    assert joined(["a", "b"], ["c", "d"]).numpy().tolist() == [b"ac", b"bd"]
