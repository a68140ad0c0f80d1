"""Filling masks, how likely a text is, and training on raw strings."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import GOLDEN
from hypothesis import HealthCheck, given, settings
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

from albert_tf.models import AlbertMaskedLM, AlbertPretrainer

TEXTS = ["很好吃，我想你来吧", "", "差", "太差了！太差了！", "他 去 了吗"]


@pytest.fixture(scope="module")
def model():
    """Not to be changed."""
    return randomised(AlbertMaskedLM.from_backbone(small_backbone(), VOCABULARY))


def ids_of(tokens):
    return [token_id(token) for token in tokens]


def probabilities(model, token_ids, position):
    """By the model of ids, one text without padding: float64 [vocabulary]."""
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


# --- Filling ---


def test_fill_gives_the_likeliest_tokens_in_order(model):
    expected = probabilities(model, [CLS, *ids_of("很好"), MASK, *ids_of("吃"), SEP], 3)
    answers = model.fill("很好[MASK]吃", top_k=4)
    best = np.argsort(-expected)[:4]
    assert [answer["token"] for answer in answers] == best.tolist()
    assert [answer["score"] for answer in answers] == pytest.approx(expected[best])
    for answer in answers:
        assert answer["token_str"] == VOCABULARY[answer["token"]]
        filled = answer["token_str"].removeprefix("##")
        assert answer["sequence"] == f"很好{filled}吃"
        assert (answer["start"], answer["end"]) == (2, 8)


def test_fill_of_lists_and_of_several_masks(model):
    texts = ["[MASK]好", "很[MASK]吃[MASK]", "好" * 20 + "[MASK]"]
    together = model.fill(texts, top_k=2, batch_size=2)
    for text, answers in zip(texts, together, strict=True):
        alone = model.fill(text, top_k=2)
        for one, other in zip(np.ravel(answers), np.ravel(alone), strict=True):
            assert one["score"] == pytest.approx(other.pop("score"), rel=1e-4)
            assert {name: one[name] for name in other} == other
    second = together[1]
    assert [len(answers) for answers in second] == [2, 2]
    # Both are masked while each is filled.
    ids = [CLS, *ids_of("很"), MASK, *ids_of("吃"), MASK, SEP]
    for position, answers in zip((2, 4), second, strict=True):
        best = probabilities(model, ids, position).argmax()
        assert answers[0]["token"] == best
    assert model.fill([texts[0]]) == [model.fill(texts[0])]


def test_targets_restrict_and_keep_the_probabilities(model):
    expected = probabilities(model, [CLS, *ids_of("很"), MASK, SEP], 2)
    answers = model.fill("很[MASK]", targets=["差", "好", "差", "##a"], top_k=9)
    got = {answer["token_str"]: answer["score"] for answer in answers}
    wanted = {x: expected[VOCABULARY.index(x)] for x in ("好", "差", "##a")}
    assert got == pytest.approx(wanted)
    assert list(got.values()) == sorted(got.values(), reverse=True)
    with pytest.raises(ValueError, match=r"Not in it: \['很好', '鑫'\]"):
        model.fill("很[MASK]", targets=["好", "很好", "鑫"])


def test_fill_refuses_what_it_cannot_fill(model):
    with pytest.raises(ValueError, match=r"Text 1 has no \[MASK\].*很好"):
        model.fill(["[MASK]", "很好"])
    long = "好" * 26 + "[MASK][MASK]"
    with (
        pytest.warns(UserWarning, match="were cut"),
        pytest.raises(
            ValueError, match="2 masks, but only 1 within sequence_length=29"
        ),
    ):
        model.fill(long)
    tokens = [f"[unused{i}]" if x == "[MASK]" else x for i, x in enumerate(VOCABULARY)]
    without = AlbertMaskedLM.from_backbone(small_backbone(), [*tokens[:-1], "x1"])
    with pytest.raises(ValueError, match=r"vocabulary has no \[MASK\]"):
        without.fill("[MASK]")


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.lists(st.text(max_size=5), min_size=2, max_size=4), min_size=50))
def test_places_are_those_of_the_masks_in_any_text(model, parts):
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
    good, tasty = tokens.index("好"), tokens.index("吃")
    expected = plain.copy()
    expected[[good, tasty]] += plain[-2:]
    expected[-2:] = 0
    given = model.fill("很[MASK]", top_k=len(tokens))
    scores = np.zeros(len(tokens))
    for answer in given:
        scores[answer["token"]] = answer["score"]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    served = model.answers(model(model.preprocessor(["很[MASK]"])), top_k=1)
    assert served["token_ids"].numpy() == expected.argmax()
    texts = (tf.constant(["很[MASK]", "好", "[MASK]很[MASK]"]),)
    served = model.text_answers(texts, model, top_k=2)
    assert served["token_ids"][0, 0, 0].numpy() == expected.argmax()
    is_mask = np.array([[True, False], [False, False], [True, True]])
    for name, nothing in {"tokens": b"", "token_ids": -1, "scores": 0}.items():
        assert ((served[name].numpy() != nothing).all(-1) == is_mask).all()
    # Without `marked_labels` they are tokens as others are.
    model.preprocessor.marked_labels = False
    marked = model.fill("很[MASK]", targets="##好")[0]
    assert marked["score"] == pytest.approx(plain[-2], rel=1e-4)
    assert marked["sequence"] == "很好"


# --- From checkpoints ---


@pytest.mark.parametrize(
    ("name", "marked"), [("albert_zh_preln", True), ("google_groups", False)]
)
def test_from_checkpoint(name, marked):
    path = GOLDEN / name
    model = AlbertMaskedLM.from_checkpoint(path, vocabulary=VOCABULARY)
    assert model.preprocessor.marked_labels is marked
    golden = dict(np.load(path / "expected.npz"))
    inputs = {
        "token_ids": golden["input_ids"],
        "segment_ids": golden["segment_ids"],
        "padding_mask": golden["input_mask"],
        "mask_positions": golden["masked_lm_positions"],
    }
    logits = model(inputs)
    logs = tf.nn.log_softmax(tf.reshape(logits, [-1, logits.shape[-1]]))
    np.testing.assert_allclose(logs, golden["mlm_log_probs"], atol=5e-5)


# --- How likely a text is ---


def test_pseudo_perplexity_masks_each_token_in_turn(model):
    def by_hand(text):
        ids = [CLS, *ids_of(text.replace(" ", "")), SEP]
        logs = []
        for i in range(1, len(ids) - 1):
            masked = [*ids[:i], MASK, *ids[i + 1 :]]
            logs.append(np.log(probabilities(model, masked, i)[ids[i]]))
        return np.exp(-np.mean(logs)) if logs else np.nan

    given = model.pseudo_perplexity(TEXTS, batch_size=5)
    expected = [by_hand(text) for text in TEXTS]
    np.testing.assert_allclose(given, expected, rtol=1e-4)
    assert np.isnan(given[1])


# --- Training ---


@pytest.fixture(scope="module")
def trained():
    """A model that was trained on texts, its history, and what it was before."""
    texts = ["我想吃鸡蛋。", "他去上海了吗？", "天上多少人", "我来了"] * 8
    keras.utils.set_random_seed(1)
    model = AlbertMaskedLM.from_backbone(small_backbone(num_layers=1), VOCABULARY)
    model.compile(learning_rate=1e-2)
    pooler = [weight.numpy() for weight in model.backbone.pooled_dense.weights]
    before = model.evaluate(texts, verbose=0, return_dict=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Gradients do not exist")
        history = model.fit(
            texts * 5, batch_size=8, epochs=4, validation_data=texts, verbose=0
        ).history
    return model, texts, history, before, pooler


@pytest.mark.slow
def test_fit_learns_the_texts_and_keeps_the_pooler(trained):
    model, texts, history, before, pooler = trained
    # The most frequent token of theirs is 1 in 10.
    assert before["accuracy"] < 0.1 and history["val_accuracy"][-1] > 0.3
    options = {"batch_size": 8, "verbose": 0, "return_dict": True}
    after = model.evaluate(texts, **options)
    assert after == model.evaluate(texts, **options)
    assert after["loss"] == pytest.approx(history["val_loss"][-1], rel=1e-5)
    for old, new in zip(pooler, model.backbone.pooled_dense.weights, strict=True):
        assert np.array_equal(old, new)


@pytest.mark.slow
def test_datasets_are_masked_as_lists_are(trained):
    model, texts = trained[:2]
    model.compile(run_eagerly=True)
    data = tf.data.Dataset.from_tensor_slices(texts).batch(16)
    first = model.evaluate(data, verbose=0)
    assert first == model.evaluate(data, verbose=0)
    # Other masks, of the same texts.
    other = model.evaluate(texts, batch_size=16, verbose=0)
    assert first != other and first[0] == pytest.approx(other[0], rel=0.5)
    data, texts = data.take(1), texts[:8]
    model.fit(data, group_by_length=True, verbose=0)
    model.preprocessor.segmenter = list
    with pytest.raises(ValueError, match="goes without a segmenter"):
        model.fit(data, group_by_length=True)
    model.fit(data, validation_data=data, verbose=0)
    model.preprocessor.segmenter = None
    pairs = tf.data.Dataset.from_tensor_slices(((texts, texts),)).batch(4)
    model.fit(pairs, verbose=0)
    assert model.text_inputs == ("text", "text_b")


def test_labels_are_the_texts_themselves(model):
    with pytest.raises(ValueError, match="Leave out `y`"):
        model.fit(["很好"], [1])


def test_a_preset_gives_what_masks_are_drawn_by(model, tmp_path):
    model.preprocessor.marked_labels = True
    model.save_to_preset(str(tmp_path))
    model.preprocessor.marked_labels = False
    loaded = AlbertMaskedLM.from_preset(str(tmp_path))
    assert loaded.preprocessor.marked_labels
    assert loaded.fill("很[MASK]") == model.fill("很[MASK]")
