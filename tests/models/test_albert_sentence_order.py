"""Whether one text follows another."""

import numpy as np
import pytest
from conftest import GOLDEN
from small_classifier import VOCABULARY, randomised, small_backbone

import albert_tf
from albert_tf.models import AlbertMaskedLM, AlbertSentenceOrder


def test_the_head_of_a_checkpoint():
    path = GOLDEN / "albert_zh_postln"
    model = AlbertSentenceOrder.from_checkpoint(path, vocabulary=VOCABULARY)
    golden = dict(np.load(path / "expected.npz"))
    inputs = {
        "token_ids": golden["input_ids"],
        "segment_ids": golden["segment_ids"],
        "padding_mask": golden["input_mask"],
    }
    given = np.log(model.answers(model(inputs))["in_order"])
    np.testing.assert_allclose(given, golden["sop_log_probs"][:, 0], atol=5e-5)


def test_sentence_order_is_of_pairs_in_their_order():
    model = randomised(AlbertSentenceOrder.from_backbone(small_backbone(), VOCABULARY))
    first, second = ["我来了", "好", "他去上海"], ["很好吃", "你来吧", "是吗"]
    given = model.sentence_order(first, second)
    logits = model.predict((first, second), verbose=0).astype("float64")
    expected = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
    np.testing.assert_allclose(given, expected, atol=1e-6)
    assert np.abs(given - model.sentence_order(second, first)).min() > 1e-4
    with pytest.raises(ValueError, match="order is one of two texts"):
        model.fit(first, [0, 1, 0])


def test_a_checkpoint_without_the_head(tmp_path):
    model = AlbertMaskedLM.from_backbone(small_backbone(), VOCABULARY)
    albert_tf.save_checkpoint(model, tmp_path, layout="albert_zh")
    with pytest.raises(ValueError, match="has no sentence-order head"):
        AlbertSentenceOrder.from_checkpoint(tmp_path)
