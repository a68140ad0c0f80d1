"""Decoding tag scores to entities, in the graph and in NumPy, by brute force."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data import tags_to_spans
from albert_tf.data.labels.tags import spans_to_tags, tag_names
from albert_tf.models.tagging import Tagging
from albert_tf_lite import tagging as lite

CASES = {
    "BIO": (tag_names(["PER", "LOC"]), "BIO"),
    "BIOES": (tag_names(["PER"], "BIOES"), "BIOES"),
    "in another order": (["I-LOC", "B-PER", "O", "B-LOC", "I-PER"], "BIO"),
    "BMES": (["B-PER", "M-PER", "E-PER", "S-PER", "O"], "BIOES"),
}


def is_by_the_rules(tags, scheme):
    """Return whether the tags survive a round trip through spans."""
    tags = [tag.replace("M-", "I-") for tag in tags]
    return spans_to_tags(tags_to_spans(tags), len(tags), scheme) == tags


@pytest.mark.parametrize(("tags", "scheme"), CASES.values(), ids=CASES)
def test_entities_are_those_of_the_best_sequence_by_the_rules(tags, scheme):
    tagging = Tagging(tags)
    assert tagging.scheme == scheme
    rng = np.random.default_rng(3)
    lengths = [4, 0, 1, 5, 2, 3, 5, 5, 4]
    rows = [rng.normal(size=(n, len(tags))).astype("float32") * 2 for n in lengths]
    plain, unruly = lite.Tagging(tags), 0
    for row, first, ends, label, score in zip(
        rows, *decode(tagging, rows), strict=True
    ):
        best = best_sequence(row, tags, scheme)
        unruly += best != [tags[i] for i in row.argmax(-1)]
        assert list(zip(first, ends, label, strict=True)) == tags_to_spans(best)
        exponents = np.exp(row)
        probabilities = exponents / exponents.sum(-1, keepdims=True)
        chosen = probabilities[range(len(row)), [tags.index(tag) for tag in best]]
        expected = [chosen[a:b].mean() for a, b in zip(first, ends, strict=True)]
        np.testing.assert_allclose(score, expected, rtol=1e-5)
        n = len(row)
        in_numpy = plain.entities(row, range(n), range(1, n + 1))
        assert [x[:3] for x in in_numpy] == list(zip(first, ends, label, strict=True))
        np.testing.assert_allclose([x[3] for x in in_numpy], score, rtol=1e-5)
        # A token within the character of the token before it is skipped.
        twice = plain.entities(
            row.repeat(2, axis=0), *np.repeat([range(n), range(1, n + 1)], 2, axis=1)
        )
        assert twice == in_numpy
    assert unruly > 2


def decode(tagging, rows):
    """Return start, end, label and score of entities; a token is a character."""
    lengths = [len(row) for row in rows]
    logits = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), lengths)
    starts = tf.ragged.range(tf.constant(lengths, tf.int32))
    found = tagging.entities_in_graph(logits, starts, starts + 1)
    start, end, labels, score = (column.to_list() for column in found)
    labels = [[label.decode() for label in row] for row in labels]
    return start, end, labels, score


def best_sequence(scores, tags, scheme):
    positions = range(len(scores))
    return max(
        (
            list(sequence)
            for sequence in itertools.product(tags, repeat=len(scores))
            if is_by_the_rules(sequence, scheme)
        ),
        key=lambda tagged: sum(scores[i, tags.index(tagged[i])] for i in positions),
    )
