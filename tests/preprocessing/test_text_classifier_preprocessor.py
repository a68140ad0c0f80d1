"""Strings and pairs to ids: eagerly, in `tf.data`, with both tokenizers."""

import warnings

import numpy as np
import pytest
import tensorflow as tf
from sentence_piece_reference import Reference, train_model

from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.text_classifier_preprocessor import check_fits
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *"好坏很不太差了", "a", "b", "##b", "？"]
PAD, UNK, CLS, SEP = range(4)
ENGLISH = ["On 3 May 2018, the river", "", "Why?"]


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


def small_backbone(vocabulary_size, **kwargs):
    sizes = {"num_layers": 1, "num_heads": 2, "embedding_dim": 4, "hidden_dim": 8}
    return AlbertBackbone(vocabulary_size, intermediate_dim=16, **sizes, **kwargs)


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
        (["好" * 11, "", "差"], ids("好" * 11), 0),
        (["好" * 12, "差", "好" * 11, "好" * 30] * 300, ids("好" * 11), 600),
        ((["好" * 40, "好" * 12], ["差" * 7, ""]), ids("好好好好好|差差差差差"), 2),
    ],
    ids=["all fit", "several chunks", "pairs"],
)
def test_long_texts_are_truncated_and_counted(preprocessor, x, expected, count):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        packed = preprocessor.pack_texts(x)
    said = [f"{count} of {len(packed)} texts"] * (count > 0)
    assert [str(warning.message)[: len(said[0])] for warning in caught] == said
    features = preprocessor.packer.pad(packed.tokens, packed.first_lengths)
    assert features["token_ids"][0].numpy().tolist() == expected
    for name, value in preprocessor(x).items():
        np.testing.assert_array_equal(features[name], value)


@pytest.mark.traced
def test_datasets_map(preprocessor):
    first, second, labels = ["很好", "", "好"], ["好", "坏", "太差了"], [1, 0, 1]
    dataset = tf.data.Dataset.from_tensor_slices(((first, second), labels))
    ((x, y),) = dataset.batch(3).map(preprocessor).as_numpy_iterator()
    expected = [ids("很好|好", 8), ids("|坏", 8), ids("好|太差了", 8)]
    assert x["token_ids"].tolist() == expected
    assert x["segment_ids"].sum(axis=1).tolist() == [2, 2, 4]
    assert y.tolist() == labels


# === SentencePiece ===


@pytest.fixture(scope="module")
def proto():
    return train_model()


def english_preprocessor(proto):
    tokenizer = SentencePieceTokenizer(proto)
    return AlbertTextClassifierPreprocessor(tokenizer, sequence_length=20)


def packed(proto, text):
    return [2, *Reference(proto).ids(text), 3]


def without_padding(features):
    rows = zip(features["token_ids"], features["padding_mask"], strict=True)
    return [np.array(ids)[np.array(mask) == 1].tolist() for ids, mask in rows]


def test_sentence_pieces_are_packed(proto):
    preprocessor = english_preprocessor(proto)
    expected = [packed(proto, text) for text in ENGLISH]
    assert without_padding(preprocessor(ENGLISH)) == expected
    padded_with_1 = english_preprocessor(train_model(pad_id=1, unk_id=0))(ENGLISH)
    mask = padded_with_1["padding_mask"].numpy()
    assert set(padded_with_1["token_ids"].numpy()[mask == 0]) == {1}


@pytest.mark.traced
def test_another_model_is_traced_anew(proto):
    preprocessor = english_preprocessor(proto)
    before = preprocessor.pack_texts(ENGLISH).tokens.to_list()
    other = train_model(model_type="bpe", vocab_size=150)
    preprocessor.tokenizer.set_proto(other)
    after = preprocessor.pack_texts(ENGLISH).tokens.to_list()
    assert after != before
    assert after == [packed(other, text) for text in ENGLISH]


def test_a_preset_restores_the_sentence_piece_model(proto, tmp_path):
    preprocessor = english_preprocessor(proto)
    size = preprocessor.tokenizer.vocabulary_size()
    backbone = small_backbone(size, max_sequence_length=20)
    task = AlbertTextClassifier(backbone, 2, preprocessor=preprocessor)
    task.save_to_preset(str(tmp_path))
    restored = AlbertTextClassifier.from_preset(str(tmp_path)).preprocessor
    assert restored.tokenizer.proto == proto
    assert restored.sequence_length == 20
    assert without_padding(restored(ENGLISH)) == [packed(proto, x) for x in ENGLISH]
    other = english_preprocessor(train_model(vocab_size=100))
    with pytest.raises(ValueError, match=r"has \d+ tokens.*Use the spiece.model that"):
        check_fits(other, backbone)
