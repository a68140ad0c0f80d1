"""`SegmentPacker` against BERT's rules, and windows of long texts, by brute force."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_classifier import VOCABULARY

from albert_tf.preprocessing import (
    AlbertQuestionAnsweringPreprocessor,
    AlbertTokenClassifierPreprocessor,
    SegmentPacker,
)
from albert_tf.preprocessing.segment_packer import Windows
from albert_tf.tokenizers import WordPieceTokenizer
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
    for part in (rows, singles):
        check(part, length, sequence_length=length, padding="max_length")


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_a_batch_is_padded_to_a_multiple(dtype):
    rows = pairs([(3, 0), (0, 2), (9, 8), (1, 1)])
    for multiple, time in ((1, 20), (8, 24), (9, 27), (30, 29)):
        check(rows, time, dtype, sequence_length=29, pad_to_multiple_of=multiple)
    for padding, expected in (("longest", [8, 8, 16, 29]), ("max_length", [29] * 4)):
        packer = SegmentPacker(CLS, SEP, PAD, 29, padding)
        assert packer.padded_lengths(np.array([0, 8, 9, 27])).tolist() == expected


# === Windows ===


def context(token, start, end, length):
    """Distance of a token from the nearest cut of its window."""
    left = np.inf if start == 0 else token - start
    right = np.inf if end == length else end - 1 - token
    return min(left, right)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 9), st.data()
)
def test_each_token_is_decided_once_where_it_has_most_context(lengths, size, data):
    stride = data.draw(st.integers(1, size))
    tokens = tf.RaggedTensor.from_row_lengths(tf.range(sum(lengths)), lengths)
    windows = Windows.of(tokens, size, stride)
    columns = windows.texts, windows.starts, windows.ends
    columns += windows.first_decided, windows.last_decided
    bounds = list(zip(*(column.numpy().tolist() for column in columns), strict=True))
    by = {}
    for text, start, end, first, last in bounds:
        assert 0 <= start <= first <= last <= end <= lengths[text]
        assert end - start == min(size, lengths[text])
        for token in range(first, last):
            assert (text, token) not in by
            by[text, token] = context(token, start, end, lengths[text])
    assert len(by) == sum(lengths)
    for (text, token), own in by.items():
        contexts = [
            context(token, start, end, lengths[text])
            for of, start, end, *_ in bounds
            if of == text and start <= token < end
        ]
        assert own == max(contexts)


def test_what_was_split_is_merged():
    lengths = [0, 7, 2, 23, 4]
    tokens = tf.RaggedTensor.from_row_lengths(100 + tf.range(sum(lengths)), lengths)
    windows = Windows.of(tokens, 4, 3)
    assert len(windows.texts) == 1 + 2 + 1 + 8 + 1
    split = windows.of_windows(tokens.values)
    assert split[1].numpy().tolist() == [100, 101, 102, 103]
    edge = tf.fill([split.nrows(), 1], -1)
    given = tf.concat([edge, split, edge], axis=1)
    # Two values per token.
    given = given.with_values(tf.stack([given.values, -given.values], axis=1))
    for form in (given, given.to_tensor(-9)):
        merged = windows.merge(form).numpy().tolist()
        assert merged == [[i, -i] for i in tokens.values.numpy()]


def test_windows_of_a_context_are_a_stride_apart():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    for stride, expected in ((3, [0, 3, 6, 7]), (99, [0, 5, 7]), (None, [0, 3, 6, 7])):
        packer = AlbertQuestionAnsweringPreprocessor(tokenizer, 10, stride)
        # Two tokens of the question leave five for the context.
        context = ["很好坏不太差了的一是我你"]
        packed = packer.pack_texts((["吃吗"], context))
        if stride != 99:
            tagged = AlbertTokenClassifierPreprocessor(tokenizer, 7, stride=stride)
            starts = tagged.pack_texts(context).windows.starts
            assert starts.numpy().tolist() == expected
        assert packed.windows.starts.numpy().tolist() == expected
        assert packed.lengths.numpy().tolist() == [10] * len(expected)
