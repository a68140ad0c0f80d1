"""Strings and pairs to ids: eagerly, in `tf.data`, with both tokenizers."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer

PAD, UNK, CLS, SEP = range(4)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"好坏很不太差了a", "##b"]


def ids(text, time=None):
    """Packed ids of a text of one-character tokens; `|` separates a pair."""
    first, *second = text.split("|")
    packed = [CLS, *map(VOCABULARY.index, first), SEP]
    for part in second:
        packed += [*map(VOCABULARY.index, part), SEP]
    return packed + [PAD] * ((time or len(packed)) - len(packed))


@pytest.fixture(scope="module")
def preprocessor():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    return AlbertTextClassifierPreprocessor(tokenizer, sequence_length=13)


def test_texts_and_pairs_become_ids(preprocessor):
    features = preprocessor(["很好", "aB 😀", ""])
    a, b = VOCABULARY.index("a"), VOCABULARY.index("##b")
    assert features["token_ids"].numpy().tolist() == [
        ids("很好", 8),
        [CLS, a, b, UNK, SEP, PAD, PAD, PAD],
        ids("", 8),
    ]
    assert features["padding_mask"].numpy().sum(axis=1).tolist() == [4, 5, 2]
    assert not features["segment_ids"].numpy().any()
    pairs = preprocessor((["很好", "差"], ["太差了", ""]))
    assert pairs["token_ids"].numpy().tolist() == [ids("很好|太差了", 8), ids("差", 8)]
    assert pairs["segment_ids"].numpy().tolist() == [[0] * 4 + [1] * 4, [0] * 8]
    for x, expected in (("很好", "很好"), (("好", "差"), "好|差")):
        assert preprocessor(x)["token_ids"].numpy().tolist() == ids(expected, 8)


@pytest.mark.parametrize(
    ("x", "expected", "count"),
    [
        (["好" * 12, "差", "好" * 11, "好" * 30] * 300, ids("好" * 11), 600),
        ((["好" * 40, "好" * 12], ["差" * 7, ""]), ids("好好好好好|差差差差差"), 2),
    ],
)
def test_long_texts_are_truncated_and_counted(preprocessor, x, expected, count):
    with pytest.warns(UserWarning, match=f"^{count} of .* texts are longer"):
        packed = preprocessor.pack_texts(x)
    features = preprocessor.packer.pad(packed.tokens, packed.first_lengths)
    assert features["token_ids"][0].numpy().tolist() == expected
    for name, value in preprocessor(x).items():
        np.testing.assert_array_equal(features[name], value)


@pytest.mark.traced
def test_many_preprocessors_in_a_program_are_not_taken_for_retracing(
    preprocessor, monkeypatch
):
    """TensorFlow warns of the fifth trace of a function in ten calls."""
    warnings = []
    monkeypatch.setattr(tf.get_logger(), "warning", lambda *args: warnings.append(args))
    for length in range(8, 16):
        packed = AlbertTextClassifierPreprocessor(
            preprocessor.tokenizer, sequence_length=length
        ).pack_rows(["天气好"])
        assert packed.tokens.shape == (1, None)
    assert not warnings
