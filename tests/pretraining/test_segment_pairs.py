"""Sentences to sequences: order, lengths and the text that is used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.pretraining.segment_pairs import Sentences, draw_sequences

CLS, SEP, PAD = 1, 2, 0
# Kinds of the second segment by label, as in the papers and their code.
ORDERS = {
    "sop": ("next", "previous"),
    "nsp": ("next", "other"),
    "three_way": ("next", "previous", "other"),
    "none": (),
}
CHI_SQUARE = {1: 10.83, 2: 13.82}


def corpus(documents, seed=0, longest=30):
    """Documents of random sentences, every token with another number."""
    random = np.random.default_rng(seed)
    bounds, end = [], 0
    for sentences in documents:
        lengths = random.integers(1, longest + 1, sentences)
        bounds.append(end + np.concatenate([[0], np.cumsum(lengths)]))
        end = bounds[-1][-1]
    starts = random.random(end) < 0.6
    return Sentences(np.arange(10, end + 10, dtype="int32"), starts, bounds)


def segments(arrays, row):
    """Segments of a sequence, found by its special tokens."""
    ids = arrays["token_ids"][row]
    assert ids[0] == CLS
    ends = np.flatnonzero(ids == SEP)
    text = arrays["padding_mask"][row].sum()
    assert text == ends[-1] + 1 and (ids[text:] == PAD).all()
    parts = [ids[1 : ends[0]]]
    if len(ends) == 2:
        parts.append(ids[ends[0] + 1 : ends[1]])
    expected = np.zeros(len(ids), int)
    expected[ends[0] + 1 : ends[-1] + 1] = 1
    assert (arrays["segment_ids"][row] == expected).all()
    return parts


def sequences(sentences, length, order, seed=1, **kwargs):
    random = np.random.default_rng(seed)
    ids = CLS, SEP, PAD
    return draw_sequences(sentences, length, random, ids, order, **kwargs)


@given(
    documents=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    length=st.integers(8, 40),
    order=st.sampled_from(sorted(ORDERS)),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=120, deadline=None)
def test_segments_follow_the_label(documents, length, order, seed):
    sentences = corpus(documents, seed)
    arrays = sequences(sentences, length, order, seed)
    kinds = ORDERS[order]
    document_of = np.repeat(
        np.arange(len(documents)), [x[-1] - x[0] for x in sentences.documents]
    )
    for row, label in enumerate(arrays["labels"]):
        parts = segments(arrays, row)
        assert len(parts) == (2 if kinds else 1)
        for part in parts:
            # Contiguous text of one document.
            assert len(part) and (np.diff(part) == 1).all()
            assert len(set(document_of[part - 10])) == 1
        if not kinds:
            assert label == 0
            continue
        first, second = (document_of[part[0] - 10] for part in parts)
        kind = kinds[label]
        assert (first != second) == (kind == "other")
        if kind != "other":
            assert (parts[0][0] < parts[1][0]) == (kind == "next")
    used = arrays["token_ids"][arrays["token_ids"] >= 10]
    starts = arrays["word_starts"][arrays["token_ids"] >= 10]
    # As in the text, but where a segment begins.
    assert (starts >= sentences.word_starts[used - 10]).all()
    assert not arrays["word_starts"][arrays["token_ids"] < 10].any()


@pytest.mark.parametrize("order", ["sop", "three_way"])
def test_kinds_are_equally_frequent(order):
    sentences = corpus([40] * 2000)
    labels = sequences(sentences, 64, order)["labels"]
    counts = np.bincount(labels, minlength=len(ORDERS[order]))
    assert len(counts) == len(ORDERS[order]) and len(labels) > 10_000
    expected = len(labels) / len(counts)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < CHI_SQUARE[len(counts) - 1]


def test_text_is_used_once_and_whole_where_it_fits():
    sentences = corpus([30, 25, 40])
    arrays = sequences(sentences, 400, "none", short_sequence_rate=0)
    ids = arrays["token_ids"][arrays["token_ids"] >= 10]
    assert sorted(ids) == sorted(set(ids))
    # Except for excess tokens of the last sentence of a sequence.
    assert len(ids) > 0.9 * len(sentences.tokens)
