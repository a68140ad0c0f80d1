"""Wrong characters, found and put right."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import GOLDEN
from small_classifier import VOCABULARY, randomised, small_backbone, token_id

from albert_tf.models import AlbertSpellingCorrector


def test_logits_are_those_of_the_masked_lm_head_at_every_token():
    path = GOLDEN / "google_v2"
    model = AlbertSpellingCorrector.from_checkpoint(path, vocabulary=VOCABULARY)
    golden = dict(np.load(path / "expected.npz"))
    logits = model(
        {
            "token_ids": golden["input_ids"],
            "segment_ids": golden["segment_ids"],
            "padding_mask": golden["input_mask"],
        }
    ).numpy()
    positions = golden["masked_lm_positions"]
    logits = np.take_along_axis(logits, positions[..., None], axis=1)
    logits = logits.reshape(-1, logits.shape[-1]).astype("float64")
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(logs, golden["mlm_log_probs"], atol=5e-5)


def test_targets_are_the_right_characters_where_the_tokens_agree():
    model = AlbertSpellingCorrector.from_backbone(small_backbone(), VOCABULARY)
    given = model.targets(["他再 家", "ab好", ""], ["他在 家", "a 好", ""]).to_list()
    # [CLS] and [SEP] have no target, nor has a word that is cut otherwise.
    assert given[0] == [-1, *map(token_id, "他在家"), -1]
    assert given[1] == [-1, token_id("a"), -1, token_id("好"), -1]
    assert given[2] == [-1, -1]
    with pytest.raises(
        ValueError, match=r"These two differ in length: \('好', '好吃'\)"
    ):
        model.fit(["好", "好"], ["好", "好吃"])
    with pytest.raises(ValueError, match="corrected text of each"):
        model.fit(["好"])


@pytest.fixture(scope="module")
def trained():
    """Knows that after 很 comes 好, not 吃 or 不."""
    keras.utils.set_random_seed(4)
    right = ["我很好", "他很好吃吗", "很好", "你来了，很好！", "不吃"] * 6
    rng = np.random.default_rng(0)
    wrong = [text.replace("很好", "很" + rng.choice(list("吃不好"))) for text in right]
    backbone = small_backbone(num_layers=1)
    model = randomised(AlbertSpellingCorrector.from_backbone(backbone, VOCABULARY))
    model.compile(learning_rate=1e-2)
    model.fit(wrong, right, batch_size=6, epochs=12, verbose=0)
    return model


@pytest.mark.slow
def test_correct_changes_wrong_characters_alone(trained):
    texts = ["我很吃", "😀 很不 Ａ!", "我很好", ""] * 20
    given = trained.correct(texts)
    assert given[0] == {
        "source": "我很吃",
        "target": "我很好",
        "errors": [("吃", "好", 2)],
    }
    for text, found in zip(texts, given, strict=True):
        assert found["source"] == text and len(found["target"]) == len(text)
        changed = [i for i, x in enumerate(found["target"]) if x != text[i]]
        assert [place for *_, place in found["errors"]] == changed
        for wrong, right, place in found["errors"]:
            assert (text[place], found["target"][place]) == (wrong, right)
    # What is no Chinese character is never changed.
    assert given[1]["target"][0] == "😀" and given[1]["target"][4:] == " Ａ!"


def test_strings_are_put_right_in_a_graph_as_by_correct():
    model = randomised(
        AlbertSpellingCorrector.from_backbone(small_backbone(), VOCABULARY)
    )
    # So that it is a Chinese character that it finds right.
    (bias,) = (x for x in model.masked_lm_head.weights if x.shape == (120,))
    bias.assign(bias + 99.0 * np.eye(120)[token_id("好")])
    texts = ["我很吃", "😀 很不 Ａ!", "", "abc 他é吃", "很" * 40, "\x00好 \u3000差"]
    served = model.text_answers((tf.constant([*texts, b"\xff\xe5\xa5\xbd"]),), model)
    corrected = [text.decode() for text in served["corrected"].numpy()]
    assert corrected == [x["target"] for x in model.correct([*texts, "好"])]
    assert corrected[:2] == ["好好好", "😀 好好 Ａ!"]
    # As far as it reads.
    assert corrected[4] == "好" * 27 + "很" * 13
