"""Tasks that read pretrained heads: masked LM, sentence order, spelling correction."""

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

import albert_tf
from albert_tf.models import (
    AlbertMaskedLM,
    AlbertPretrainer,
    AlbertSentenceOrder,
    AlbertSpellingCorrector,
)

TEXTS = ["很好吃，我想你来吧", "", "差", "他 去 了吗"]


@pytest.fixture(scope="module")
def model():
    return randomised(AlbertMaskedLM.from_backbone(small_backbone(), VOCABULARY))


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
        given = np.log(model.answers(outputs)["in_order"])
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
    assert [answer["score"] for answer in answers] == pytest.approx(expected[best])
    for answer in answers:
        assert answer["token_str"] == VOCABULARY[answer["token"]]
        filled = answer["token_str"].removeprefix("##")
        assert answer["sequence"] == f"很好{filled}吃"
        assert (answer["start"], answer["end"]) == (2, 8)
    # Targets keep their probabilities.
    answers = model.fill("很好[MASK]吃", targets=["差", "好", "差", "##a"], top_k=9)
    got = {answer["token_str"]: answer["score"] for answer in answers}
    wanted = {x: expected[VOCABULARY.index(x)] for x in ("好", "差", "##a")}
    assert got == pytest.approx(wanted)
    assert list(got.values()) == sorted(got.values(), reverse=True)


def test_both_masks_stay_while_each_is_filled(model):
    ids = [CLS, *ids_of("很"), MASK, *ids_of("吃"), MASK, SEP]
    (one, both) = model.fill(["[MASK]好" * 3, "很[MASK]吃[MASK]"], top_k=2)
    assert list(map(len, one)) == [2, 2, 2]
    for position, answers in zip((2, 4), both, strict=True):
        best = probabilities(model, ids, position).argmax()
        assert len(answers) == 2 and answers[0]["token"] == best


def test_texts_that_cannot_be_filled_raise(model):
    with pytest.raises(ValueError, match=r"Text 1 has 0 \[MASK\].*很好"):
        model.fill(["[MASK]", "很好"])
    with pytest.raises(ValueError, match=r"Not in it: \['很好', '鑫'\]"):
        model.fill("很[MASK]", targets=["好", "很好", "鑫"])
    with (
        pytest.warns(UserWarning, match="were truncated"),
        pytest.raises(ValueError, match="has 2 .*, 1 within sequence_length=29"),
    ):
        model.fill("好" * 26 + "[MASK][MASK]")


@pytest.mark.traced
@settings(max_examples=5)
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


def test_marked_characters_count_as_the_character(tmp_path):
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
    texts = (tf.constant(["很[MASK]", "好", "[MASK]很[MASK]"]),)
    served = model.text_answers(texts, model, top_k=2)
    assert served["token_ids"][0, 0, 0].numpy() == expected.argmax()
    is_mask = np.array([[True, False], [False, False], [True, True]])
    for name, nothing in {"tokens": b"", "token_ids": -1, "scores": 0}.items():
        assert ((served[name].numpy() != nothing).all(-1) == is_mask).all()
    model.save_to_preset(str(tmp_path))
    loaded = AlbertMaskedLM.from_preset(str(tmp_path))
    assert loaded.preprocessor.marked_labels
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

    texts = TEXTS[1:]
    found = model.pseudo_perplexity(texts, batch_size=5)
    np.testing.assert_allclose(found, list(map(by_hand, texts)), rtol=1e-4)
    assert np.isnan(found[0])


def test_sentence_order_depends_on_the_order(tmp_path):
    model = randomised(AlbertSentenceOrder.from_backbone(small_backbone(), VOCABULARY))
    first, second = ["我来了", "好", "他去上海"], ["很好吃", "你来吧", "是吗"]
    found = model.sentence_order(first, second)
    logits = model.predict((first, second), verbose=0).astype("float64")
    expected = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(found - model.sentence_order(second, first)).min() > 1e-4
    with pytest.raises(ValueError, match="must be pairs of texts"):
        model.fit(first, [0, 1, 0])
    without_head = AlbertMaskedLM.from_backbone(small_backbone(), VOCABULARY)
    albert_tf.save_checkpoint(without_head, tmp_path, layout="albert_zh")
    with pytest.raises(ValueError, match="has no sentence-order head"):
        AlbertSentenceOrder.from_checkpoint(tmp_path)


def test_spelling_targets_are_the_right_characters_where_the_tokens_agree():
    model = AlbertSpellingCorrector.from_backbone(small_backbone(), VOCABULARY)
    found = model.targets(["他再 家", "ab好", ""], ["他在 家", "a 好", ""]).to_list()
    # [CLS], [SEP] and words that are split differently have no target.
    assert found[0] == [-1, *map(token_id, "他在家"), -1]
    assert found[1] == [-1, token_id("a"), -1, token_id("好"), -1]
    assert found[2] == [-1, -1]
    with pytest.raises(ValueError, match=r"differ in length: \('好', '好吃'\)"):
        model.fit(["好", "好"], ["好", "好吃"])
    with pytest.raises(ValueError, match="1 texts and 0 labels"):
        model.fit(["好"])


@pytest.mark.traced
def test_a_graph_corrects_strings_like_correct():
    model = randomised(
        AlbertSpellingCorrector.from_backbone(small_backbone(), VOCABULARY)
    )
    # A bias, so that it predicts a Chinese character everywhere.
    (bias,) = (x for x in model.masked_lm_head.weights if x.shape == (120,))
    bias.assign(bias + 99.0 * np.eye(120)[token_id("好")])
    texts = ["我很吃", "😀 很不 Ａ!", "", "abc 他é吃", "很" * 40, "\x00好 \u3000差"]
    served = model.text_answers((tf.constant([*texts, b"\xff\xe5\xa5\xbd"]),), model)
    corrected = [text.decode() for text in served["corrected"].numpy()]
    found = model.correct([*texts, "好"])
    assert corrected == [x["target"] for x in found]
    # Only Chinese characters are changed, up to the sequence length.
    assert corrected[:2] == ["好好好", "😀 好好 Ａ!"]
    assert corrected[4] == "好" * 27 + "很" * 13
    for text, row in zip(texts, found, strict=False):
        changed = [i for i, x in enumerate(row["target"]) if x != text[i]]
        assert [place for *_, place in row["errors"]] == changed
