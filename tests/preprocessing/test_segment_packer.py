"""`SegmentPacker` against BERT's rules, followed one token at a time."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.preprocessing import SegmentPacker
from albert_tf_lite.packing import pack, pad

CLS, SEP, PAD = 101, 102, 7


def pack_like_bert(sequence_length, first, second=()):
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


def check(rows, time, dtype=tf.int32, **kwargs):
    """Pack rows of (first, second) with and without a graph, each padded to `time`."""
    packer = SegmentPacker(CLS, SEP, PAD, **kwargs)
    segments = [
        tf.ragged.constant(part, dtype, ragged_rank=1)
        for part in zip(*rows, strict=True)
    ]
    packed = [pack_like_bert(packer.sequence_length, *row) for row in rows]
    expected = {
        "token_ids": [ids + [PAD] * (time - len(ids)) for ids, _ in packed],
        "segment_ids": [ones + [0] * (time - len(ones)) for _, ones in packed],
        "padding_mask": [[1] * len(i) + [0] * (time - len(i)) for i, _ in packed],
    }
    features = packer(segments)
    assert set(features) == set(expected)
    for name, value in expected.items():
        assert features[name].dtype == tf.int32
        np.testing.assert_array_equal(features[name], value, err_msg=name)
    plain = [pack(row, CLS, SEP, packer.sequence_length) for row in rows]
    whole = [pack_like_bert(10_000, *row)[0] for row in rows]
    assert plain == [
        (ids, ones, ids != all_ids)
        for (ids, ones), all_ids in zip(packed, whole, strict=True)
    ]
    if kwargs.get("pad_to_multiple_of") == 8:
        for name, value in pad(plain, PAD, packer.sequence_length).items():
            assert value.dtype == np.int32
            np.testing.assert_array_equal(value, expected[name], err_msg=name)


def pairs(lengths):
    return [([*range(1000, 1000 + a)], [*range(2000, 2000 + b)]) for a, b in lengths]


@pytest.mark.parametrize("length", [5, 6, 13])
def test_every_pair_of_lengths_is_truncated_as_in_bert(length):
    rows = pairs(itertools.product(range(13), range(13)))
    singles = [(first,) for first, _ in rows]
    for given in (rows, singles):
        check(given, length, sequence_length=length, padding="max_length")


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_a_batch_is_padded_to_a_multiple(dtype):
    rows = pairs([(3, 0), (0, 2), (9, 8), (1, 1)])
    for multiple, time in ((1, 20), (8, 24), (9, 27), (30, 29)):
        check(rows, time, dtype, sequence_length=29, pad_to_multiple_of=multiple)
    for padding, expected in (("longest", [8, 8, 16, 29]), ("max_length", [29] * 4)):
        packer = SegmentPacker(CLS, SEP, PAD, 29, padding)
        assert packer.padded_lengths(np.array([0, 8, 9, 27])).tolist() == expected
