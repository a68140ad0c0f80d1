"""Text vectors: pooling, search, losses."""

import json

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from checkpoint_files import assert_same_weights
from small_classifier import OTHERS, TEXTS, VOCABULARY, randomised, small_backbone

from albert_tf.checkpoints import save_checkpoint
from albert_tf.models import AlbertTextEmbedder
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf.training import PairLoss
from albert_tf_lite.answers import cosines
from albert_tf_lite.errors import AlbertError


def embedder(num_layers=2, **kwargs):
    backbone = small_backbone(num_layers=num_layers)
    return randomised(AlbertTextEmbedder.from_backbone(backbone, VOCABULARY, **kwargs))


@pytest.fixture(scope="module")
def model():
    return embedder()


# === Vectors ===


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "first_last_mean"])
def test_pooling_of_each_text_alone(mode):
    model = embedder(pooling_mode=mode, normalize=False)
    layers = model.backbone.with_intermediates()
    given = model.encode_text(TEXTS)
    assert given.shape == (len(TEXTS), 12) and given.dtype == "float32"
    for text, vector in zip(TEXTS, given, strict=True):
        features = model.preprocessor([text])
        count = int(np.sum(features["padding_mask"]))
        features = {name: x[:, :count] for name, x in features.items()}
        _, first, last = (np.array(x)[0] for x in layers(features)["hidden_states"])
        expected = {
            "cls": last[0],
            "mean": last.mean(axis=0),
            "max": last.max(axis=0),
            "first_last_mean": np.mean([first.mean(axis=0), last.mean(axis=0)], axis=0),
        }
        np.testing.assert_allclose(vector, expected[mode], atol=2e-6)


def test_search_returns_the_nearest(model):
    # Vectors are normalized by default.
    lengths = np.linalg.norm(model.encode_text(TEXTS), axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-5)
    cosines = model.encode_text(OTHERS[:2]) @ model.encode_text(TEXTS).T
    found = model.search(OTHERS[:2], TEXTS, top_k=3)
    for row, answers in zip(cosines, found, strict=True):
        best = np.argsort(-row)[:3]
        assert [answer["index"] for answer in answers] == best.tolist()
        assert [answer["text"] for answer in answers] == [TEXTS[i] for i in best]
        scores = [answer["score"] for answer in answers]
        assert scores == pytest.approx(row[best], abs=1e-6)


# === The loss ===


def cosent(scores, cosines, scale):
    terms = [
        np.exp(scale * (cosines[j] - cosines[i]))
        for i in range(len(scores))
        for j in range(len(scores))
        if scores[i] > scores[j]
    ]
    return np.log(1 + np.sum(terms))


def in_batch(cosines, rows):
    """Return the mean cross-entropy of these pairs, in both directions."""
    sums = np.log(np.exp(cosines).sum(0)) + np.log(np.exp(cosines).sum(1))
    return np.mean((sums - 2 * np.diag(cosines))[rows]) / 2


@pytest.mark.parametrize(
    "scores", [[2.5, 0, 0, 5, -1], [1] * 5, [np.nan] * 5, [np.nan, 3, np.nan, 1, 2]]
)
def test_the_loss_of_scored_and_unscored_pairs(scores):
    scale = 2.0
    vectors = np.random.default_rng(0).normal(size=(10, 7))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = scale * unit[::2] @ unit[1::2].T
    unscored = np.isnan(scores)
    expected = cosent(np.array(scores)[~unscored], np.diag(cosines)[~unscored], 1)
    if unscored.any():
        expected += in_batch(cosines, unscored)
    given = PairLoss(scale)(np.repeat(scores, 2), vectors)
    assert float(given) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_equal_texts_are_no_negatives():
    # Question i has the answer i % 3: with right vectors nothing is left to learn.
    angles = 2 * np.pi * np.arange(3) / 3
    right = np.stack([np.cos(angles), np.sin(angles)], axis=1)[[0, 1, 2] * 2]
    pairs = np.repeat(right, 2, axis=0)
    scores = np.full(12, np.nan)
    assert float(PairLoss()(scores, pairs)) < 1e-6
    # Equal first texts (0 and 1), and a text that is first here and second there (4).
    numbers = np.array([0, 1, 0, 2, 3, 4, 4, 5])
    vectors = np.random.default_rng(0).normal(size=(8, 5))[numbers]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    logits = 20 * unit[::2] @ unit[1::2].T
    # Only the first text of pair 3 is the second of pair 2.
    logits[[0, 1, 3], [1, 0, 2]] = -np.inf
    expected = in_batch(logits, range(4))
    noisy = vectors + np.random.default_rng(1).normal(size=vectors.shape) / 1e6
    targets = np.stack([np.full(8, np.nan), numbers], axis=1)
    assert float(PairLoss()(targets, noisy)) == pytest.approx(expected, rel=1e-4)
    assert float(PairLoss()(targets[:, 0], noisy)) > expected + 0.1


def test_fit_compares_no_texts_that_are_equal_after_truncation():
    short = embedder(sequence_length=6)
    first = ["天地人大", "好坏很不太差", "好坏很不了的"]
    x = (first, ["上下", "左右", "前后"])
    unit = short.predict([text for pair in zip(*x, strict=True) for text in pair])
    logits = 20 * unit[::2] @ unit[1::2].T
    logits[[1, 2], [2, 1]] = -np.inf
    expected = in_batch(logits, [0, 1, 2])
    dataset = tf.data.Dataset.from_tensor_slices(x).batch(3)
    for data in (x, dataset.map(lambda *x: (x,))):
        assert short.evaluate(data, verbose=0) == pytest.approx(expected, rel=1e-4)
    with pytest.raises(AlbertError, match="All 2 pairs have the same second text"):
        short.fit((["一", "二"], ["三", "三"]))


def test_similarities_are_cosines(model):
    """From -1 to 1, symmetric, 0 for zeros, of any type of float."""
    texts = [f"{text}{number}" for number in "abcde" for text in TEXTS] * 3
    vectors = model.encode_text(texts, verbose=0)
    similarities = model.similarity(vectors, vectors)
    assert similarities.dtype == "float32" and np.array_equal(
        similarities, similarities.T
    )
    assert (similarities.diagonal() == 1).all() and abs(similarities).max() <= 1
    for kind, tolerance in (("float16", 1e-3), (ml_dtypes.bfloat16, 1e-2)):
        # Squares of these overflow float16.
        given = model.similarity(300 * vectors.astype(kind), -vectors)
        np.testing.assert_allclose(given, -similarities, atol=tolerance)
    assert not model.similarity(np.zeros((2, 3)), np.ones((1, 3))).any()
    assert model.similarity(np.full((1, 3), 1e-9), np.ones((1, 3))) == 1
    # Those of pairs, as pipelines, `evaluate` and exported files have them.
    pairs = cosines(vectors[1:], vectors[:-1])
    np.testing.assert_allclose(pairs, similarities.diagonal(1), rtol=1e-6)
    assert cosines(vectors, vectors).tolist() == [1.0] * len(texts)
    with pytest.raises(AlbertError, match="of equal length"):
        model.similarity(vectors, vectors[:, 1:])


# === Folders of sentence-transformers ===


def write_folder(folder, pooling, *kinds, first=""):
    """Write a backbone as sentence-transformers does; return the model of `first`."""
    backbone = small_backbone(embedding_projection="after_layer_norm")
    tokenizer = WordPieceTokenizer(VOCABULARY)
    save_checkpoint(randomised(backbone), folder / first, "huggingface", tokenizer)
    path = folder / first / "sentence_bert_config.json"
    path.write_text(json.dumps({"max_seq_length": 6, "do_lower_case": False}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    paths = {"Transformer": first, "Pooling": "1_Pooling"}
    modules = [
        {"type": f"sentence_transformers.models.{x}", "path": paths.get(x, f"2_{x}")}
        for x in ("Transformer", "Pooling", *kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    return backbone


POOLINGS = {
    "cls": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    "mean": {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
    "max": {"word_embedding_dimension": 12, "pooling_mode": "max"},
}


@pytest.mark.filterwarnings("ignore:.* keeps max_input_chars_per_word")
@pytest.mark.parametrize("mode", POOLINGS)
def test_folders_of_sentence_transformers_choose_pooling_and_length(mode, tmp_path):
    first = "0_Transformer" if mode == "cls" else ""
    backbone = write_folder(tmp_path, POOLINGS[mode], "Normalize", first=first)
    options = {"sequence_length": 9, "pooling_mode": "first_last_mean"}
    model = AlbertTextEmbedder.from_checkpoint(tmp_path)
    given = AlbertTextEmbedder.from_checkpoint(tmp_path, **options)
    found = [(x.preprocessor.sequence_length, x.pooling_mode) for x in (model, given)]
    assert found == [(6, mode), (9, "first_last_mean")] and model.normalize
    assert model.preprocessor.tokenizer.get_vocabulary() == VOCABULARY
    assert_same_weights(model.backbone, backbone)


@pytest.mark.filterwarnings("ignore:.* keeps max_input_chars_per_word")
@pytest.mark.parametrize(
    ("pooling", "kinds", "message"),
    [
        (POOLINGS["cls"], ["Dense"], "by cls and the module Dense. Expected one"),
        ({"pooling_mode": "lasttoken"}, [], "by lasttoken. Expected one"),
        (dict.fromkeys(POOLINGS["cls"], True), [], "by cls and mean. Expected one"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, [], "by pooling_mode_mean_sqrt"),
    ],
)
def test_modules_that_are_not_supported(pooling, kinds, message, tmp_path):
    write_folder(tmp_path, pooling, *kinds)
    with pytest.raises(AlbertError, match=message):
        AlbertTextEmbedder.from_checkpoint(tmp_path)
    model = AlbertTextEmbedder.from_checkpoint(tmp_path, pooling_mode="mean")
    assert model.pooling_mode == "mean"
