"""Texts longer than the model reads, window by window."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_classifier import TEXTS, call, predict, small_classifier

from albert_tf.models.text_windows import cut_windows

LONG = "好坏很不太差了的一是我你他吃想鸡蛋中文天地人大小上下左右前后多少来去见开"


@pytest.fixture(scope="module")
def classifier():
    return small_classifier(sequence_length=12)


def test_short_texts_are_predicted_as_without_windows(classifier):
    short = [text for text in TEXTS if len(text) <= 10]
    expected = predict(classifier, short)
    for windows in ("mean", "max"):
        given = predict(classifier, short, windows=windows)
        np.testing.assert_allclose(given, expected, atol=1e-6)


@pytest.mark.parametrize(("windows", "combine"), [("mean", np.mean), ("max", np.max)])
def test_a_long_text_is_the_mean_or_the_largest_of_its_windows(
    classifier, windows, combine
):
    # 36 characters: 10 a window, a new one every 5, the last reaches the end.
    pieces = [LONG[start : start + 10] for start in range(0, 30, 5)]
    assert len(LONG) == 36
    pieces.append(LONG[30:])
    expected = combine(call(classifier, pieces), axis=0)
    texts = ["好", LONG, ""]
    given = predict(classifier, texts, windows=windows, batch_size=3)
    np.testing.assert_allclose(given[1], expected, atol=1e-5)
    np.testing.assert_allclose(given[[0, 2]], call(classifier, ["好", ""]), atol=1e-5)
    assert np.abs(given[1] - call(classifier, [LONG])[0]).max() > 1e-3


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.integers(1, 9).flatmap(
        lambda size: st.tuples(st.just(size), st.integers(1, size))
    ),
)
def test_windows_cover_each_text_and_no_more(lengths, sizes):
    size, stride = sizes
    tokens = tf.ragged.range(lengths)
    windows, counts = cut_windows(tokens, size, stride)
    rows = iter(windows.to_list())
    for length, count in zip(lengths, counts, strict=True):
        own = [next(rows) for _ in range(count)]
        assert sorted({token for row in own for token in row}) == list(range(length))
        assert all(len(row) <= size for row in own)
        starts = [row[0] for row in own if row]
        assert starts == list(range(0, stride * len(starts), stride))
        # One fewer would not reach the end.
        assert count == 1 or stride * (count - 2) + size < length
    assert next(rows, None) is None


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (["好"], {"windows": "sum"}, "must be in"),
        ((["好"], ["坏"]), {"windows": "mean"}, "single texts"),
        (["好"], {"windows": "mean", "stride": 11}, "between 1 and the 10 tokens"),
    ],
)
def test_what_is_refused(classifier, x, options, message):
    with pytest.raises(ValueError, match=message):
        classifier.predict(x, verbose=0, **options)
