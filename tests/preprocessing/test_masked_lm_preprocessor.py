"""Texts that contain masks, and texts that are masked for training."""

import numpy as np
import pytest
import tensorflow as tf
from small_classifier import CLS, MASK, PAD, SEP, VOCABULARY, token_id

from albert_tf.preprocessing import AlbertMaskedLMPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer


def preprocessor(**kwargs):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    return AlbertMaskedLMPreprocessor(tokenizer, **{"sequence_length": 29, **kwargs})


def ids(text):
    return [MASK if x == "_" else token_id(x) for x in text]


def test_mask_positions_of_texts_with_masks():
    texts = ["很_吃", "", "__好", "x _ y"]
    given = preprocessor().features([text.replace("_", "[MASK]") for text in texts])
    for text, token_ids, positions in zip(
        texts, given["token_ids"].numpy(), given["mask_positions"].numpy(), strict=True
    ):
        expected = [CLS, *ids(text.replace(" ", "")), SEP]
        assert token_ids.tolist() == expected + [PAD] * (len(token_ids) - len(expected))
        where = [i for i, token in enumerate(expected) if token == MASK]
        assert positions.tolist() == where + [0] * (2 - len(where))
    pair = ["[MASK]好"], ["吃[MASK]"]
    for x, expected in (("很[MASK]吃", [2]), (pair, [[1, 5]]), (["很好"], [[0]])):
        positions = preprocessor().features(x)["mask_positions"]
        assert positions.numpy().tolist() == expected


def test_labels_restore_the_masked_tokens():
    keep = preprocessor(mask_selection_rate=0.4, mask_token_rate=1, random_token_rate=0)
    texts = ["很好吃我想你来吧" * 3, "", "太差了", "x y"]
    plain = keep.features(texts)["token_ids"].numpy()
    features, labels, weights = keep.masked(texts, seed=[1, 2])
    token_ids, positions = features["token_ids"].numpy(), features["mask_positions"]
    there = weights.numpy() > 0
    assert weights.numpy().mean() == pytest.approx(1)
    restored = token_ids.copy()
    for row, (at, label, used) in enumerate(zip(positions, labels, there, strict=True)):
        at, label = np.array(at)[used], np.array(label)[used]
        assert (token_ids[row, at] == MASK).all()
        assert not np.isin(label, [CLS, SEP, PAD]).any()
        restored[row, at] = label
    assert np.array_equal(restored, plain)
    packed = keep.features(texts)
    features, _, weights = keep.masked(packed, sample_weight=[0, 0, 2, 1])
    assert weights.numpy().mean() == pytest.approx(1)
    assert not weights.numpy()[0].any() and weights.numpy()[2].any()
    share = there.sum() / (len("".join(texts)) - 1)
    assert 0.3 < share < 0.55


@pytest.mark.traced
def test_a_call_masks_each_text_in_a_dataset_like_keras_hub():
    every = preprocessor(
        sequence_length=17,
        padding="max_length",
        mask_selection_rate=1.0,
        mask_selection_length=17,
        mask_token_rate=1,
        random_token_rate=0,
    )
    every = every.with_tokenizer(every.tokenizer)
    texts = ["很好[MASK]吃", "", "我想你来吧"]
    data = tf.data.Dataset.from_tensor_slices(texts).map(every).batch(3)
    for x, y, weights in (every(texts), data.get_single_element()):
        ids_of_masks = np.zeros((3, 17), int)
        # The `[MASK]` of a text has no label.
        ids_of_masks[0, :3], ids_of_masks[2, :5] = ids("很好吃"), ids("我想你来吧")
        assert np.array_equal(y, ids_of_masks)
        assert np.array_equal(weights, ids_of_masks > 0)
        assert x["mask_positions"][0].numpy().tolist() == [1, 2, 4] + [0] * 14
        assert x["token_ids"][0, :6].numpy().tolist() == [CLS] + 4 * [MASK] + [SEP]
        assert every(x, y)[0] is x


@pytest.mark.slow
@pytest.mark.traced
def test_words_of_a_segmenter_are_masked_whole():
    def by_three(text):
        return [text[i : i + 3] for i in range(0, len(text), 3)]

    text = "很好吃我想你来吧呢"
    whole = preprocessor(
        segmenter=by_three, ngram=1, mask_token_rate=1, random_token_rate=0
    )
    # The first call creates a variable, so that a dataset would trace it twice.
    whole.masked([text])
    data = tf.data.Dataset.from_tensors([text, text[:6]]).repeat(8)
    patterns = set()
    for features, _, _ in data.map(whole.masked):
        masked = features["token_ids"].numpy()[:, 1:10] == MASK
        words = masked.reshape(-1, 3)
        assert (words.all(axis=1) | ~words.any(axis=1)).all()
        patterns.add(masked[0].tobytes())
    # In `tf.data` the masks of each batch are drawn anew.
    assert len(patterns) > 1
