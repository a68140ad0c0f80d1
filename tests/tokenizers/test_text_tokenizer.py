"""Features of both tokenizers: forms of input, graphs, lookups, saving, loading."""

import copy
import json
import pickle
import random
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from reference_tokenizer import tokenize
from sentence_piece_reference import Reference, train_model

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.tokenizers import (
    SentencePieceTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS = [*SPECIAL, *"我想,！3", "hello", "cafe", "on", "may", "river", "##s"]
TEXTS = ["Hello我想 on 3 May, the river", "", " \t\u3000", "Cafés！ stoñes!"]


@pytest.fixture(scope="module", params=["WordPiece", "SentencePiece"])
def case(request):
    """A tokenizer, its vocabulary and the ids of the texts."""
    if request.param == "WordPiece":
        ids = {token: i for i, token in enumerate(TOKENS)}
        expected = [[ids[p] for p in tokenize(text, ids)] for text in TEXTS]
        return WordPieceTokenizer(TOKENS), TOKENS, expected
    proto = train_model()
    expected = [Reference(proto).ids(text) for text in TEXTS]
    return SentencePieceTokenizer(proto), proto, expected


@pytest.fixture
def tokenizer(case):
    return case[0]


# === Calling ===


def test_strings_of_any_form_and_rank(case):
    tokenizer, _, expected = case
    for texts in (TEXTS, np.array(TEXTS), tf.constant(TEXTS), np.array(TEXTS, object)):
        ids = tokenizer(texts)
        assert isinstance(ids, tf.RaggedTensor) and ids.dtype == tf.int32
        assert ids.to_list() == expected
    assert tokenizer.detokenize(tokenizer("River on")).numpy() == b"river on"
    ids = tokenizer(TEXTS[0])
    assert isinstance(ids, tf.Tensor) and ids.numpy().tolist() == expected[0]
    assert tokenizer([TEXTS[:2], TEXTS[2:]]).to_list() == [expected[:2], expected[2:]]
    ragged = tf.ragged.constant([TEXTS[:1], TEXTS[1:]])
    for ids in (tokenizer(ragged), tokenizer.tokenize_with_offsets(ragged)[0]):
        assert ids.to_list() == [expected[:1], expected[1:]]


@pytest.mark.traced
def test_graphs_and_datasets(case):
    tokenizer, _, expected = case
    texts = [*TEXTS, "cafe\u0301 on", "\u0301", "\u200bon", "한a 5, ", "\0", "a" * 201]
    function = tf.function(
        tokenizer.tokenize_with_offsets,
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    columns = [ragged.to_list() for ragged in function(tf.constant(texts))]
    assert columns[0][: len(TEXTS)] == expected
    # Each text as if it were alone.
    for row, text in enumerate(texts):
        alone = tokenizer.tokenize_with_offsets(text)
        assert [x[row] for x in columns] == [x.numpy().tolist() for x in alone]
    batches = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3).map(tokenizer)
    assert [row for batch in batches for row in batch.to_list()] == expected


def test_invalid_bytes_are_skipped(tokenizer):
    rng = random.Random(0)
    parts = [bytes([i]) for i in range(256)] + 64 * [c.encode() for c in "aé中😀Σ ,5"]
    texts = [b"".join(rng.choices(parts, k=rng.randrange(12))) for _ in range(1000)]
    valid = [text.decode("utf-8", errors="ignore") for text in texts]
    for ours, theirs in zip(
        tokenizer.tokenize_with_offsets(texts),
        tokenizer.tokenize_with_offsets(valid),
        strict=True,
    ):
        assert ours.to_list() == theirs.to_list()


def test_special_tokens_in_strings(case):
    plain, source, _ = case
    tokenizer = type(plain)(source, special_tokens_in_strings=True)
    texts = ["Hello[MASK]我想, café[SEP][SEP] on", "", "[MASK]", "[mask]"]
    ids, starts, ends = (x.to_list() for x in tokenizer.tokenize_with_offsets(texts))
    copied = pickle.loads(pickle.dumps(tokenizer))
    assert ids == tokenizer(texts).to_list() == copied(texts).to_list()
    for row, text in enumerate(texts):
        expected, place = [], 0
        for part in re.split(r"(\[MASK\]|\[SEP\])", text):
            if part in SPECIAL:
                columns = [plain.token_to_id(part)], [0], [len(part)]
            else:
                columns = (x.numpy() for x in plain.tokenize_with_offsets(part))
            expected += [
                (i, a + place, b + place) for i, a, b in zip(*columns, strict=True)
            ]
            place += len(part)
        assert list(zip(ids[row], starts[row], ends[row], strict=True)) == expected


# === Saving ===


@pytest.fixture
def original(case, tmp_path):
    """A tokenizer of a file, with other settings than the defaults."""
    path, kind = case[0].save_original(tmp_path), type(case[0])
    more = {"strip_accents": True, "tokenize_chinese_chars": False}
    more |= {"max_input_chars_per_word": 4, "added_tokens": {"river": True}}
    more = {} if kind is SentencePieceTokenizer else more
    return kind(path, lowercase=False, dtype="int64", name="mine", **more)


def assert_same(restored, original):
    assert type(restored) is type(original)
    assert restored.name == "mine"
    assert restored.fingerprint == original.fingerprint
    ids = restored("Hello river 3")
    assert ids.dtype == tf.int64
    assert ids.numpy().tolist() == original("Hello river 3").numpy().tolist()


def test_presets(case, original, tmp_path):
    kind, preset = type(original), str(tmp_path / "preset")
    sizes = {"num_layers": 1, "num_heads": 1, "embedding_dim": 2, "hidden_dim": 2}
    size = original.vocabulary_size()
    AlbertBackbone(size, intermediate_dim=2, **sizes).save_to_preset(preset)
    original.save_to_preset(preset)
    (tmp_path / kind.original_file_name).rename(tmp_path / "moved")
    assert_same(kind.from_preset(preset), original)
    assert kind.from_preset(preset, lowercase=True).lowercase


def test_configs_assets_and_copies(original, tmp_path):
    config = keras.saving.serialize_keras_object(original)
    assert config["registered_name"] == f"albert_tf>{type(original).__name__}"
    # The preset contains the vocabulary, because a path would belong to this machine.
    assert str(tmp_path) not in json.dumps(config)
    restored = keras.saving.deserialize_keras_object(config)
    original.save_assets(tmp_path)
    assert (tmp_path / original.file_assets[0]).exists()
    restored.load_assets(tmp_path)
    for copied in (
        restored,
        pickle.loads(pickle.dumps(original)),
        copy.deepcopy(original),
    ):
        assert_same(copied, original)


# === Which tokenizer a vocabulary is for ===


def test_the_file_decides_the_tokenizer(tmp_path):
    proto = train_model()
    for name in ("30k-clean.model", "a.spm", "a.bin"):
        (tmp_path / name).write_bytes(proto)
    for name in ("vocab", "b.model"):
        (tmp_path / name).write_text("\n".join(TOKENS), encoding="utf-8")
    for given in (str(tmp_path / "30k-clean.model"), tmp_path / "a.spm", proto):
        tokenizer = load_tokenizer(given, lowercase=False)
        assert (tokenizer.proto, tokenizer.lowercase) == (proto, False)
    for given in (tmp_path / "vocab", TOKENS):
        tokenizer = load_tokenizer(given)
        assert (tokenizer.get_vocabulary(), tokenizer.lowercase) == (TOKENS, True)
    for name, error, message in (
        ("no.txt", FileNotFoundError, "no.txt"),
        ("b.model", ValueError, "b.model' is text.*use WordPieceTokenizer"),
        ("a.bin", ValueError, "a.bin' is not UTF-8.*must end in .model"),
    ):
        with pytest.raises(error, match=message):
            load_tokenizer(tmp_path / name)
