"""Masked words, and the golden outputs of tasks that read pretrained heads."""

import numpy as np
import pytest
import tensorflow as tf
from conftest import GOLDEN
from hypothesis import given, settings
from hypothesis import strategies as st
from small_classifier import (
    CLS,
    MASK,
    SEP,
    VOCABULARY,
    randomised,
    small_backbone,
    token_id,
)
from task_cases import CASES

from albert_tf.models import (
    AlbertMaskedLM,
    AlbertPretrainer,
    AlbertSentenceOrder,
    AlbertSpellingCorrector,
)


@pytest.fixture(scope="module")
def model():
    return CASES["masked language model"].build()


def ids_of(tokens):
    return [token_id(token) for token in tokens]


def probabilities(model, token_ids, position):
    """Return the pretrainer's probabilities for one text without padding."""
    pretrainer = AlbertPretrainer(model.backbone, num_sop_classes=0, compile=False)
    pretrainer.masked_lm_head.set_weights(model.masked_lm_head.get_weights())
    inputs = {
        "token_ids": np.array([token_ids]),
        "segment_ids": np.zeros((1, len(token_ids)), "int32"),
        "padding_mask": np.ones((1, len(token_ids)), "int32"),
        "mask_positions": np.array([[position]]),
    }
    logits = np.array(pretrainer(inputs)["mlm_logits"], "float64")[0, 0]
    return np.exp(logits - np.log(np.exp(logits).sum()))


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (AlbertMaskedLM, "albert_zh_preln"),
        (AlbertMaskedLM, "google_groups"),
        (AlbertSentenceOrder, "albert_zh_postln"),
        (AlbertSpellingCorrector, "google_v2"),
    ],
)
def test_heads_of_a_checkpoint_give_the_golden_outputs(cls, name):
    path = GOLDEN / name
    model = cls.from_checkpoint(path, vocabulary=VOCABULARY)
    golden = dict(np.load(path / "expected.npz"))
    inputs = {
        "token_ids": golden["input_ids"],
        "segment_ids": golden["segment_ids"],
        "padding_mask": golden["input_mask"],
        "mask_positions": golden["masked_lm_positions"],
    }
    outputs = model({name: inputs[name] for name in model.input})
    if cls is AlbertSentenceOrder:
        given = np.log(model.postprocess(outputs)["in_order"])
        np.testing.assert_allclose(given, golden["sop_log_probs"][:, 0], atol=5e-5)
        return
    if cls is AlbertSpellingCorrector:
        positions = inputs["mask_positions"][..., None]
        outputs = np.take_along_axis(outputs.numpy(), positions, axis=1)
    logs = tf.nn.log_softmax(tf.reshape(outputs, [-1, outputs.shape[-1]]))
    np.testing.assert_allclose(logs, golden["mlm_log_probs"], atol=5e-5)
    if cls is AlbertMaskedLM:
        assert model.preprocessor.marked_labels == name.startswith("albert_zh")


def test_fill_returns_the_likeliest_tokens_in_order(model):
    expected = probabilities(model, [CLS, *ids_of("很好"), MASK, *ids_of("吃"), SEP], 3)
    answers = model.fill("很好[MASK]吃", top_k=4)
    best = np.argsort(-expected)[:4]
    assert [answer["token"] for answer in answers] == best.tolist()
    scores = [answer["score"] for answer in answers]
    # In graphs, some operations are fused.
    assert scores == pytest.approx(expected[best], rel=1e-5)
    for answer in answers:
        assert answer["token_str"] == VOCABULARY[answer["token"]]
        filled = answer["token_str"].removeprefix("##")
        assert answer["sequence"] == f"很好{filled}吃"
        assert (answer["start"], answer["end"]) == (2, 8)
    # Targets keep their probabilities.
    answers = model.fill("很好[MASK]吃", targets=["差", "好", "差", "##a"], top_k=9)
    got = {answer["token_str"]: answer["score"] for answer in answers}
    wanted = {x: expected[VOCABULARY.index(x)] for x in ("好", "差", "##a")}
    assert got == pytest.approx(wanted, rel=1e-5)
    assert list(got.values()) == sorted(got.values(), reverse=True)


@pytest.mark.traced
@settings(max_examples=3)
@given(st.lists(st.lists(st.text(max_size=5), min_size=2, max_size=4), min_size=50))
def test_offsets_of_masks_in_any_text(model, parts):
    texts = ["[MASK]".join(part) for part in parts]
    short = [text for text in texts if len(text) < 25]
    for text, answers in zip(short, model.fill(short, top_k=1), strict=True):
        answers = [answers] if isinstance(answers[0], dict) else answers
        assert len(answers) == text.count("[MASK]")
        for (answer,) in answers:
            start, end = answer["start"], answer["end"]
            assert text[start:end] == "[MASK]"
            filled = answer["token_str"].removeprefix("##")
            assert answer["sequence"] == text[:start] + filled + text[end:]


def test_marked_characters_count_as_the_character():
    tokens = [*VOCABULARY[:-2], "##好", "##吃"]
    model = randomised(
        AlbertMaskedLM.from_backbone(small_backbone(), tokens, marked_labels=True)
    )
    plain = probabilities(model, [CLS, *ids_of("很"), MASK, SEP], 2)
    expected = plain.copy()
    expected[[tokens.index("好"), tokens.index("吃")]] += plain[-2:]
    expected[-2:] = 0
    scores = np.zeros(len(tokens))
    for answer in model.fill("很[MASK]", top_k=len(tokens)):
        scores[answer["token"]] = answer["score"]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    # Without `marked_labels` they are separate tokens.
    model.preprocessor.marked_labels = False
    marked = model.fill("很[MASK]", targets="##好")[0]
    assert marked["score"] == pytest.approx(plain[-2], rel=1e-4)
    assert marked["sequence"] == "很好"


def test_pseudo_perplexity_masks_each_token_in_turn(model):
    def by_hand(text):
        ids = [CLS, *ids_of(text.replace(" ", "")), SEP]
        logs = []
        for i in range(1, len(ids) - 1):
            masked = [*ids[:i], MASK, *ids[i + 1 :]]
            logs.append(np.log(probabilities(model, masked, i)[ids[i]]))
        return np.exp(-np.mean(logs)) if logs else np.nan

    texts = ["", "很好吃", "我想你来吧", "好"]
    found = model.pseudo_perplexity(texts, batch_size=5)
    np.testing.assert_allclose(found, list(map(by_hand, texts)), rtol=1e-4)
