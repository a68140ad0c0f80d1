"""`SegmentPacker` against BERT's rules, followed one token at a time."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.preprocessing import SegmentPacker

CLS, SEP, PAD = 101, 102, 7
FIRST_TOKEN = 1000


def pack_like_bert(first, second, sequence_length):
    """`convert_single_example` and `_truncate_seq_pair` of google-research/bert."""
    first, second = list(first), list(second)
    if second:
        while len(first) + len(second) > sequence_length - 3:
            longer = first if len(first) > len(second) else second
            longer.pop()
    else:
        first = first[: sequence_length - 2]
    ids = [CLS, *first, SEP]
    segment_ids = [0] * len(ids)
    if second:
        ids += [*second, SEP]
        segment_ids += [1] * (len(second) + 1)
    return ids, segment_ids


def expected_batch(rows, time, sequence_length):
    """Return a batch of (first, second), each row padded to `time`."""
    packed = [pack_like_bert(*row, sequence_length) for row in rows]
    return {
        "token_ids": [ids + [PAD] * (time - len(ids)) for ids, _ in packed],
        "segment_ids": [seg + [0] * (time - len(seg)) for _, seg in packed],
        "padding_mask": [[1] * len(i) + [0] * (time - len(i)) for i, _ in packed],
    }


def assert_equal(features, expected):
    assert set(features) == set(expected)
    for name, value in expected.items():
        assert features[name].dtype == tf.int32
        np.testing.assert_array_equal(features[name], value, err_msg=name)


def ragged(rows, dtype=tf.int32):
    return tf.ragged.constant(rows, dtype=dtype, ragged_rank=1)


def make_packer(**kwargs):
    return SegmentPacker(CLS, SEP, pad_token_id=PAD, **kwargs)


def tokens(length, start=FIRST_TOKEN):
    return list(range(start, start + length))


@pytest.mark.parametrize("sequence_length", [5, 6, 13])
def test_every_pair_of_lengths_is_truncated_as_in_bert(sequence_length):
    lengths = itertools.product(range(13), range(13))
    rows = [(tokens(a), tokens(b, 2000)) for a, b in lengths]
    packer = make_packer(sequence_length=sequence_length, padding="max_length")
    segments = tuple(map(ragged, zip(*rows, strict=True)))
    expected = expected_batch(rows, sequence_length, sequence_length)
    assert_equal(packer(segments), expected)
    assert_equal(packer.pad(*packer.pack(segments)), expected)
    singles = [(first, []) for first, _ in rows]
    expected = expected_batch(singles, sequence_length, sequence_length)
    assert_equal(packer(segments[:1]), expected)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_a_batch_is_padded_to_a_multiple(dtype):
    rows = [(tokens(a), tokens(b, 2000)) for a, b in [(3, 0), (0, 2), (9, 8), (1, 1)]]
    segments = tuple(ragged(part, dtype) for part in zip(*rows, strict=True))
    for multiple, time in ((1, 20), (8, 24), (9, 27), (30, 29)):
        packer = make_packer(sequence_length=29, pad_to_multiple_of=multiple)
        assert_equal(packer(segments), expected_batch(rows, time, 29))


def test_an_empty_batch_has_a_first_position():
    features = make_packer()((ragged([tokens(3)])[:0],))
    assert {tuple(value.shape) for value in features.values()} == {(0, 8)}


@pytest.mark.parametrize(
    ("name", "value"), [("padding", "shortest"), ("sequence_length", 4)]
)
def test_a_wrong_argument_is_named_with_its_value(name, value):
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        make_packer(**{name: value})
