"""Extractive summaries: sentences are scored per window and returned with offsets."""

import numpy as np
import pytest
from small_classifier import CLS
from task_cases import CASES

ARTICLE = "我想你来吧。\n\n你好吗？　他去了！\n太差了"
# Three windows of 29 tokens.
LONG = "我想吃鸡蛋。不好吃！你他去了吗？" * 4


def scores_of(summarizer, articles):
    """Return the scores of all sentences of each article."""
    found = summarizer.summarize(articles, sentences=99, verbose=0)
    return [np.array([score for *_, score in x["sentences"]]) for x in found]


@pytest.fixture(scope="module")
def summarizer():
    return CASES["summarizer"].build()


def test_sentences_are_slices_in_order(summarizer):
    articles = [ARTICLE, LONG, "", "😀。 \n e\u0301好！"]
    summaries = summarizer.summarize(articles, sentences=2, verbose=0)
    for article, found in zip(articles, summaries, strict=True):
        spans = found["sentences"]
        assert spans == sorted(spans) and len(spans) == min(2, len(article))
        for start, end, score in spans:
            assert article[start:end] and article[start:end] in found["summary"]
            assert 0 < score < 1
    whole = summarizer.summarize([ARTICLE], sentences=9, verbose=0)[0]
    assert whole["summary"] == ARTICLE
    places = [ARTICLE[start:end] for start, end, _ in whole["sentences"]]
    assert places == ["我想你来吧。", "你好吗？", "他去了！", "太差了"]
    short = summarizer.summarize([ARTICLE], max_characters=5, verbose=0)[0]
    assert sum(end - start for start, end, _ in short["sentences"]) in (3, 4)


def test_each_sentence_is_scored_at_its_own_start(summarizer):
    """Compute each window alone."""
    articles = ["我想吃鸡蛋。", "不好吃！", "你他去了吗？"] * 4
    lengths = [len(row) + 2 for row in articles]
    expected, start = [], 0
    while start < len(articles):
        stop = start + 1
        while stop < len(articles) and sum(lengths[start : stop + 1]) <= 29:
            stop += 1
        features = summarizer.preprocessor(["".join(articles[start:stop])])
        logits = np.array(summarizer(features, training=False))[0]
        places = np.flatnonzero(np.array(features["token_ids"])[0] == CLS)
        assert len(places) == stop - start
        expected.extend(1 / (1 + np.exp(-logits[places])))
        start = stop
    for article in (LONG, articles):
        scores, other = scores_of(summarizer, [article, ARTICLE])
        np.testing.assert_allclose(scores, expected, atol=1e-5)
        assert other.shape == (4,)
