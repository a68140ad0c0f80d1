"""Texts longer than the model reads, window by window."""

import numpy as np
import pytest
from small_classifier import TEXTS, call, predict, small_classifier

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
    # 36 characters: 10 a window, a new one every 5, the last ends with it.
    pieces = [LONG[start : start + 10] for start in (*range(0, 30, 5), 26)]
    assert len(LONG) == 36
    expected = combine(call(classifier, pieces), axis=0)
    texts = ["好", LONG, ""]
    given = predict(classifier, texts, windows=windows, batch_size=3)
    np.testing.assert_allclose(given[1], expected, atol=1e-5)
    np.testing.assert_allclose(given[[0, 2]], call(classifier, ["好", ""]), atol=1e-5)
    assert np.abs(given[1] - call(classifier, [LONG])[0]).max() > 1e-3


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
