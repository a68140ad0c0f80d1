"""Sentences to sequences: segments, lengths and the text that is used."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.pretraining.records.segment_pairs import ORDERS, Sentences, cut_sequences


def test_labels_of_the_orders_are_those_of_the_papers():
    assert ORDERS == {
        "sop": ("next", "previous"),
        "nsp": ("next", "other"),
        "three_way": ("next", "previous", "other"),
        "none": (),
    }


def corpus(documents, seed=0, longest=30):
    """Documents of random sentences, every token with another number."""
    random = np.random.default_rng(seed)
    bounds, end = [], 0
    for sentences in documents:
        lengths = random.integers(1, longest + 1, sentences)
        bounds.append(end + np.concatenate([[0], np.cumsum(lengths)]))
        end = bounds[-1][-1]
    starts = random.random(end) < 0.6
    return Sentences(np.arange(end, dtype="uint32"), starts, bounds)


def cut(sentences, length, seed=1, **kwargs):
    return cut_sequences(sentences, length, np.random.default_rng(seed), **kwargs)


@given(
    documents=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    length=st.integers(8, 40),
    pairs=st.booleans(),
    keep_unpaired=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=120, deadline=None)
def test_segments_are_text_in_order(documents, length, pairs, keep_unpaired, seed):
    sentences = corpus(documents, seed)
    arrays = cut(sentences, length, seed, pairs=pairs, keep_unpaired=keep_unpaired)
    ends = np.cumsum(arrays["lengths"], dtype=int)
    assert len(arrays["token_ids"]) == len(arrays["word_starts"]) == sum(ends[-1:])
    # Every token is used at most once.
    assert (np.diff(arrays["token_ids"].astype(int)) > 0).all()
    used, rows = set(), zip(arrays["documents"], arrays["second_starts"], strict=True)
    for (begin, end), (document, middle) in zip(
        itertools.pairwise([0, *ends]), rows, strict=True
    ):
        ids = arrays["token_ids"][begin:end].astype(int)
        assert 0 < len(ids) <= length - (3 if pairs else 2)
        bounds = sentences.documents[document]
        assert bounds[0] <= ids[0] and ids[-1] < bounds[-1]
        segments = [x for x in (ids[:middle], ids[middle:]) if len(x)]
        if pairs and not keep_unpaired:
            assert len(segments) == 2
        elif not pairs:
            assert len(segments) == 1
        for segment in segments:
            assert (np.diff(segment) == 1).all()
        if len(segments) == 2:
            # Divided between two sentences.
            assert any(segments[0][-1] < x <= segments[1][0] for x in bounds)
        # Words as in the text, but where a segment begins.
        starts = sentences.word_starts[ids]
        starts[[0, middle][: len(segments)]] = True
        assert np.array_equal(arrays["word_starts"][begin:end], starts)
        used.add(document)
    if not pairs or keep_unpaired:
        assert len(used) == len(documents)


@pytest.mark.parametrize("pairs", [True, False])
def test_text_is_used_whole_where_it_fits(pairs):
    sentences = corpus([30, 25, 40])
    arrays = cut(sentences, 400, pairs=pairs, short_sequence_rate=0)
    # Except for excess tokens of the last sentence of a sequence.
    assert len(arrays["token_ids"]) > 0.9 * len(sentences.tokens)
    # A tenth of the sequences is shorter by chance.
    lengths = cut(corpus([4000]), 64, pairs=pairs)["lengths"]
    assert 0.03 < np.mean(lengths < 40) < 0.1


def test_cuts_divide_and_shorten_both_segments_alike():
    """Two sentences of 50 and 20 tokens are cut to 20 each, as 40 fit."""
    bounds = [np.array([i, i + 50, i + 70]) for i in range(0, 70_000, 70)]
    sentences = Sentences(np.arange(70_000), np.zeros(70_000, bool), bounds)
    arrays = cut(sentences, 43)
    assert (arrays["lengths"] == 40).all() and (arrays["second_starts"] == 20).all()
    front = arrays["token_ids"][::40] % 70
    # Half of the 30 tokens is cut from the front, each by chance.
    assert abs(front.mean() - 15) < 0.4 and len(set(front)) > 10
    assert arrays["word_starts"].sum() == 2000
