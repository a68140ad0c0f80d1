"""`SegmentPacker` against BERT's rules, followed one token at a time."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

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
    """What a batch of (first, second) is once each row is padded to `time`."""
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


@pytest.mark.parametrize("sequence_length", [5, 6, 8, 13])
def test_every_pair_of_lengths_is_cut_as_bert_cuts_it(sequence_length):
    lengths = itertools.product(range(13), range(13))
    rows = [(tokens(a), tokens(b, 2000)) for a, b in lengths]
    packer = make_packer(sequence_length=sequence_length, padding="max_length")

    features = packer(tuple(map(ragged, zip(*rows, strict=True))))

    expected = expected_batch(rows, sequence_length, sequence_length)
    assert_equal(features, expected)


@pytest.mark.parametrize("sequence_length", [5, 11])
def test_every_length_of_a_single_text_is_cut_to_two_less(sequence_length):
    rows = [(tokens(length), []) for length in range(15)]
    packer = make_packer(sequence_length=sequence_length, padding="max_length")

    features = packer((ragged([first for first, _ in rows]),))

    assert_equal(features, expected_batch(rows, sequence_length, sequence_length))


texts = st.lists(st.integers(FIRST_TOKEN, FIRST_TOKEN + 50), max_size=21)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(texts, texts), min_size=1, max_size=5),
    sequence_length=st.integers(5, 26),
    multiple=st.integers(1, 9),
    dtype=st.sampled_from([tf.int32, tf.int64]),
)
def test_any_batch_of_pairs_equals_bert(rows, sequence_length, multiple, dtype):
    packer = make_packer(sequence_length=sequence_length, pad_to_multiple_of=multiple)
    longest = max(len(pack_like_bert(*row, sequence_length)[0]) for row in rows)
    rounded_up = next(n for n in range(longest, 100) if n % multiple == 0)

    segments = [ragged(part, dtype) for part in zip(*rows, strict=True)]
    features = packer(tuple(segments))

    time = min(rounded_up, sequence_length)
    assert_equal(features, expected_batch(rows, time, sequence_length))


def test_padding_goes_to_a_multiple_of_eight_but_not_above_the_most():
    packer = make_packer(sequence_length=21)
    for longest, time in [(1, 8), (6, 8), (7, 16), (14, 16), (15, 21), (50, 21)]:
        features = packer((ragged([tokens(longest), tokens(1), []]),))
        assert {tuple(value.shape) for value in features.values()} == {(3, time)}


def test_max_length_is_known_before_the_text_is():
    packer = make_packer(sequence_length=17, padding="max_length")

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def pack(segment):
        features = packer((segment,))
        assert all(value.shape[1] == 17 for value in features.values())
        return features

    assert pack(ragged([tokens(3), []]))["token_ids"].shape == (2, 17)


def test_batch_without_examples_has_a_width_nevertheless():
    # A model reads the first position, of no examples too.
    features = make_packer()((ragged([tokens(3)])[:0],))
    assert {tuple(value.shape) for value in features.values()} == {(0, 8)}


def test_traced_function_packs_as_eager_does():
    rows = [(tokens(9), tokens(4, 2000)), ([], tokens(2)), (tokens(3), [])]
    packer = make_packer(sequence_length=10)
    spec = tf.RaggedTensorSpec([None, None], tf.int32)
    traced = tf.function(packer, input_signature=[(spec, spec)])

    features = traced(tuple(map(ragged, zip(*rows, strict=True))))

    assert_equal(features, expected_batch(rows, 10, 10))


@pytest.mark.slow
def test_dataset_packs_each_batch_to_its_own_length():
    rows = [(tokens(n), []) for n in (2, 5, 11, 1, 30)]
    packer = make_packer(sequence_length=20)
    dataset = tf.data.Dataset.from_tensor_slices(ragged([a for a, _ in rows]))

    batches = list(dataset.batch(2).map(lambda segment: packer((segment,))))

    for batch, start, time in zip(batches, (0, 2, 4), (8, 16, 20), strict=True):
        assert_equal(batch, expected_batch(rows[start : start + 2], time, 20))


def test_packed_tokens_are_padded_later_to_the_same():
    packer = make_packer(sequence_length=12)
    segments = (ragged([tokens(9), tokens(1)]), ragged([tokens(4), []]))
    at_once = packer(segments)
    in_steps = packer.pad(*packer.pack(segments))
    assert_equal(in_steps, {name: value.numpy() for name, value in at_once.items()})


@pytest.mark.parametrize(
    ("name", "value"),
    [("padding", "shortest"), ("sequence_length", 4), ("pad_to_multiple_of", 0)],
)
def test_wrong_argument_is_named_with_its_value(name, value):
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        make_packer(**{name: value})
