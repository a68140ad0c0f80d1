"""Strings and pairs in, ids out, alone and in `tf.data`."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models import AlbertBackbone
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *"好坏很不太差了", "a", "b", "##b", "？"]
PAD, UNK, CLS, SEP = range(4)


def ids(text, time=None):
    """The packed ids of a text of one-character tokens; `|` parts a pair."""
    first, *second = text.split("|")
    packed = [CLS, *map(VOCABULARY.index, first), SEP]
    for part in second:
        packed += [*map(VOCABULARY.index, part), SEP]
    return packed + [PAD] * ((time or len(packed)) - len(packed))


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


@pytest.fixture
def preprocessor(tokenizer):
    return AlbertTextClassifierPreprocessor(tokenizer, sequence_length=13)


def test_texts_become_ids_padded_to_the_longest(preprocessor):
    features = preprocessor(["很好", "太差了", ""])
    assert features["token_ids"].numpy().tolist() == [
        ids("很好", 8),
        ids("太差了", 8),
        ids("", 8),
    ]
    assert features["padding_mask"].numpy().sum(axis=1).tolist() == [4, 5, 2]
    assert not features["segment_ids"].numpy().any()


def test_words_are_split_into_pieces_and_unknown_ones_are_unknown(preprocessor):
    a, b, unknown = VOCABULARY.index("a"), VOCABULARY.index("##b"), UNK
    features = preprocessor(["aB 😀"])
    assert features["token_ids"][0, :5].numpy().tolist() == [CLS, a, b, unknown, SEP]


def test_pairs_become_two_segments(preprocessor):
    features = preprocessor((["很好", "差"], ["太差了", ""]))
    expected = [ids("很好|太差了", 8), ids("差", 8)]
    assert features["token_ids"].numpy().tolist() == expected
    assert features["segment_ids"].numpy().tolist() == [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0] * 8,
    ]


@pytest.mark.parametrize(("x", "expected"), [("很好", "很好"), (("好", "差"), "好|差")])
def test_single_example_has_no_batch_axis(preprocessor, x, expected):
    features = preprocessor(x)
    assert {value.shape.rank for value in features.values()} == {1}
    assert features["token_ids"].numpy().tolist() == ids(expected, 8)


def test_long_texts_are_cut_to_sequence_length(preprocessor):
    single = preprocessor(["好" * 40, "差"])["token_ids"]
    assert single.numpy().tolist() == [ids("好" * 11), ids("差", 13)]
    pair = preprocessor((["好" * 40], ["差" * 7]))["token_ids"]
    assert pair.numpy().tolist() == [ids("好好好好好|差差差差差")]


@pytest.mark.slow
def test_max_length_pads_short_texts_too(tokenizer):
    preprocessor = AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=13, padding="max_length"
    )
    assert preprocessor(["好"])["token_ids"].numpy().tolist() == [ids("好", 13)]


def test_ids_pass_unchanged(preprocessor):
    names = ("token_ids", "segment_ids", "padding_mask")
    features = {name: [[2, 3]] for name in names}
    assert preprocessor(features) == features
    x, y = preprocessor(features, [1])
    assert (x, y) == (features, [1])


def test_labels_and_weights_are_passed_on(preprocessor):
    x, y = preprocessor(["很好", "差"], [1, 0])
    assert (x["token_ids"].shape, y) == ((2, 8), [1, 0])
    x, y, weight = preprocessor(["很好", "差"], y=[1, 0], sample_weight=[0.5, 2.0])
    assert (x["token_ids"].shape, y, weight) == ((2, 8), [1, 0], [0.5, 2.0])


def test_dataset_of_texts_and_labels_maps(preprocessor):
    texts, labels = ["很好", "太差了", "不"], [2, 0, 1]
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(2)

    (x, y), (last_x, last_y) = dataset.map(preprocessor).as_numpy_iterator()

    assert x["token_ids"].tolist() == [ids("很好", 8), ids("太差了", 8)]
    assert last_x["token_ids"].tolist() == [ids("不", 8)]
    assert [*y, *last_y] == labels


def test_dataset_of_pairs_and_labels_maps(preprocessor):
    first, second, labels = ["很好", "", "好"], ["好", "坏", "太差了"], [1, 0, 1]
    dataset = tf.data.Dataset.from_tensor_slices(((first, second), labels))

    ((x, y),) = dataset.batch(3).map(preprocessor).as_numpy_iterator()

    expected = [ids("很好|好", 8), ids("|坏", 8), ids("好|太差了", 8)]
    assert x["token_ids"].tolist() == expected
    assert x["segment_ids"].sum(axis=1).tolist() == [2, 2, 4]
    assert y.tolist() == labels


@pytest.mark.slow
def test_dataset_of_single_examples_batches_after_mapping(tokenizer):
    preprocessor = AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=9, padding="max_length"
    )
    dataset = tf.data.Dataset.from_tensor_slices((["很好", "坏"], [1, 0]))
    ((x, y),) = dataset.map(preprocessor).batch(2).as_numpy_iterator()
    assert x["token_ids"].tolist() == [ids("很好", 9), ids("坏", 9)]
    assert y.tolist() == [1, 0]


def pack(preprocessor, x, **kwargs):
    tokens, first_lengths, cut = preprocessor.tokenize_and_pack(x, **kwargs)
    return preprocessor.packer.pad(tokens, first_lengths), cut


@pytest.mark.parametrize("chunk", [2, 100])
def test_tokenizing_at_once_or_in_chunks_gives_what_calling_does(preprocessor, chunk):
    x = (["很好", "", "好" * 20], ["好", "坏a", "太差了"])
    features, _ = pack(preprocessor, x, chunk=chunk)
    for name, expected in preprocessor(x).items():
        np.testing.assert_array_equal(features[name], expected)


@pytest.mark.parametrize(
    ("x", "count"),
    [
        (["好" * 11, "", "差"], 0),
        (["好" * 12, "差", "好" * 11, "好" * 30], 2),
        ((["好" * 9, "好" * 10], ["差", "差"]), 1),
        ((["好" * 11, "好" * 12], ["", ""]), 1),
    ],
    ids=["all fit", "two too long", "pairs", "pairs without second"],
)
def test_texts_that_were_cut_are_counted(preprocessor, x, count):
    assert pack(preprocessor, x)[1] == count


def test_configuration_restores_an_equal_preprocessor(tokenizer):
    preprocessor = AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=11, padding="max_length", pad_to_multiple_of=4
    )
    config = preprocessor.get_config()
    assert config["sequence_length"] == 11
    restored = AlbertTextClassifierPreprocessor.from_config(dict(config))
    assert {**restored.get_config(), "tokenizer": None} == {**config, "tokenizer": None}
    restored.tokenizer.set_vocabulary(VOCABULARY)
    assert restored(["很好"])["token_ids"].numpy().tolist() == [ids("很好", 11)]


@pytest.fixture(scope="module")
def preset(tokenizer, tmp_path_factory):
    """KerasHub loads a preprocessor only from a preset that has a model too."""
    directory = str(tmp_path_factory.mktemp("presets") / "preset")
    backbone = AlbertBackbone(
        len(VOCABULARY),
        num_layers=1,
        num_heads=2,
        embedding_dim=4,
        hidden_dim=8,
        intermediate_dim=16,
    )
    backbone.save_to_preset(directory)
    preprocessor = AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=11, pad_to_multiple_of=4
    )
    preprocessor.save_to_preset(directory)
    return directory


def test_preset_restores_vocabulary_and_settings(preset):
    restored = AlbertTextClassifierPreprocessor.from_preset(preset)
    assert restored.tokenizer.get_vocabulary() == VOCABULARY
    expected = [ids("很好很好很好很好很"), ids("太", 11)]
    assert restored(["很好" * 9, "太"])["token_ids"].numpy().tolist() == expected
    assert restored(["太"])["token_ids"].numpy().tolist() == [ids("太", 4)]


@pytest.mark.slow
def test_preset_takes_another_sequence_length(preset):
    restored = AlbertTextClassifierPreprocessor.from_preset(preset, sequence_length=7)
    assert restored(["好" * 9])["token_ids"].numpy().tolist() == [ids("好" * 5)]


def test_wrong_padding_is_named(tokenizer):
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, padding="none")
    with pytest.raises(ValueError, match="padding='none'"):
        preprocessor(["好"])
