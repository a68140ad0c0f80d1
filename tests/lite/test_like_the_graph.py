"""Packing, windows and entities in NumPy are those of the graph."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.data.tagged import tag_names
from albert_tf.models.albert_token_classifier import Tagging as InGraphTagging
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf_lite.exported_model import pack, pad
from albert_tf_lite.tagging import Tagging, without_overlap


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=5),
    st.integers(5, 30),
    st.booleans(),
)
def test_packing(lengths, sequence_length, pairs):
    segments = [
        [list(range(10 * part, 10 * part + length[part])) for length in lengths]
        for part in range(1 + pairs)
    ]
    packer = SegmentPacker(101, 102, 0, sequence_length)
    expected = packer([tf.ragged.constant(x, tf.int32) for x in segments])

    rows = [pack(x, 101, 102, sequence_length) for x in zip(*segments, strict=True)]
    found = pad(rows, 0, sequence_length)

    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)
        assert found[name].dtype == np.int32
    for length, (_, _, was_cut) in zip(lengths, rows, strict=True):
        needed = 2 + length[0] + (length[1] + (length[1] > 0)) * pairs
        assert was_cut == (needed > sequence_length)


@pytest.mark.parametrize(
    "tags",
    [
        tag_names(["PER", "LOC"], "BIO"),
        tag_names(["PER", "LOC"], "BIOES"),
        ["I-A", "O", "B-B", "M-B", "E-B", "S-B", "U-C", "L-C", "I-C"],
    ],
)
def test_entities(tags):
    rng = np.random.default_rng(0)
    lengths = [0, 1, 2, 17, 40]
    logits = [rng.normal(0, 3, (n, len(tags))).astype("float32") for n in lengths]
    # Some characters are two tokens, some tokens are of several characters.
    starts = [np.sort(rng.integers(0, 2 * n + 1, n)) for n in lengths]
    ends = [np.maximum.accumulate(s + rng.integers(1, 3, len(s))) for s in starts]
    ragged = [
        tf.RaggedTensor.from_row_lengths(np.concatenate(values), lengths)
        for values in (
            logits,
            *zip(*map(without_overlap, starts, ends), strict=True),
        )
    ]
    expected = [x.to_list() for x in InGraphTagging(tags).entities_in_graph(*ragged)]
    tagging = Tagging(tags)
    for i, row in enumerate(zip(logits, starts, ends, strict=True)):
        found = tagging.entities(*row)
        columns = [column[i] for column in expected]
        assert [x[:2] for x in found] == list(zip(*columns[:2], strict=True))
        assert [x[2].encode() for x in found] == columns[2]
        np.testing.assert_allclose([x[3] for x in found], columns[3], atol=1e-6)
    assert any(len(x) > 3 for x in expected[0])
