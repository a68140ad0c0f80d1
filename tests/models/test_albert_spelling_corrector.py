"""Spelling correction: its targets, and what it changes in a text."""

import numpy as np
import pytest
import tensorflow as tf
from small_classifier import token_id
from task_cases import CASES


@pytest.fixture(scope="module")
def model():
    return CASES["spelling corrector"].build()


def test_targets_are_the_right_characters_where_the_tokens_agree(model):
    found = model.targets(["他再 家", "ab好", ""], ["他在 家", "a 好", ""]).to_list()
    # [CLS], [SEP] and words that are split differently have no target.
    assert found[0] == [-1, *map(token_id, "他在家"), -1]
    assert found[1] == [-1, token_id("a"), -1, token_id("好"), -1]
    assert found[2] == [-1, -1]


@pytest.mark.traced
def test_a_graph_corrects_strings_like_correct(model):
    # A bias, so that it predicts a Chinese character everywhere.
    (bias,) = (x for x in model.masked_lm_head.weights if x.shape == (120,))
    bias.assign(bias + 99.0 * np.eye(120)[token_id("好")])
    texts = ["我很吃", "😀 很不 Ａ!", "", "abc 他é吃", "很" * 40, "\x00好 \u3000差"]
    served = model.serve((tf.constant([*texts, b"\xff\xe5\xa5\xbd"]),), model)
    corrected = [text.decode() for text in served["corrected"].numpy()]
    found = model.correct([*texts, "好"])
    assert corrected == [x["target"] for x in found]
    # Only Chinese characters are changed, up to the sequence length.
    assert corrected[:2] == ["好好好", "😀 好好 Ａ!"]
    assert corrected[4] == "好" * 27 + "很" * 13
    for text, row in zip(texts, found, strict=False):
        changed = [i for i, x in enumerate(row["target"]) if x != text[i]]
        assert [place for *_, place in row["errors"]] == changed
