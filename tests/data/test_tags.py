"""Spans to tags and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data.tags import check_spans, spans_to_tags, tag_names, tags_to_spans


@st.composite
def spans(draw):
    bounds = draw(st.lists(st.integers(0, 20), unique=True, max_size=10))
    bounds = sorted(bounds)[: len(bounds) // 2 * 2]
    labels = st.sampled_from(["PER", "LOC", "B-LOC"])
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return [(start, end, draw(labels)) for start, end in pairs]


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
@given(spans=spans())
def test_spans_come_back(scheme, spans):
    tags = spans_to_tags(spans, 20, scheme)
    assert set(tags) <= set(tag_names(["PER", "LOC", "B-LOC"], scheme))
    assert tags_to_spans(tags) == spans


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        # IOB1, as CoNLL-2003 was published: B only between neighbours of one label.
        (
            "I-PER I-PER O I-LOC B-LOC I-PER",
            [(0, 2, "PER"), (3, 4, "LOC"), (4, 5, "LOC")],
        ),
        (
            "B-PER M-PER E-PER S-LOC S-LOC O",
            [(0, 3, "PER"), (3, 4, "LOC"), (4, 5, "LOC")],
        ),
        ("B_PER L_PER U_LOC O O O", [(0, 2, "PER"), (2, 3, "LOC")]),
        ("E-PER E-PER I-PER E-LOC O O", [(0, 1, "PER"), (1, 2, "PER"), (2, 3, "PER")]),
    ],
)
def test_other_schemes_are_read(tags, spans):
    found = tags_to_spans(tags.split())
    assert found[: len(spans)] == spans


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 6, "PER")], r"\(0, 6, 'PER'\) does not lie in the text.* 5 characters"),
        ([(-1, 2, "PER")], "does not lie"),
        ([(2, 2, "PER")], "does not lie"),
        (
            [(3, 5, "PER"), (1, 4, "LOC")],
            r"\(1, 4, 'LOC'\) and \(3, 5, 'PER'\) overlap",
        ),
        ([("PER", 1, 4)], "is no span"),
        ([(1, 4)], "is no span"),
        ([(1, 4, None)], "is no span"),
        ([(1.5, 4, "PER")], "is no span"),
    ],
)
def test_wrong_spans(spans, message):
    with pytest.raises(ValueError, match=message):
        check_spans(spans, 5)


@pytest.mark.parametrize("labels", [[], ["PER", "PER"], ["PER", ""], "PER"])
def test_wrong_labels(labels):
    with pytest.raises(ValueError, match="`labels` should be"):
        tag_names(labels)
