"""Windows of long texts, by brute force."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_classifier import VOCABULARY

from albert_tf.preprocessing import AlbertQuestionAnsweringPreprocessor
from albert_tf.preprocessing.segment_packer import Windows
from albert_tf.tokenizers import WordPieceTokenizer


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
        packed = packer.pack_texts((["吃吗"], ["很好坏不太差了的一是我你"]))
        assert packed.windows.starts.numpy().tolist() == expected
        assert packed.lengths.numpy().tolist() == [10] * len(expected)
