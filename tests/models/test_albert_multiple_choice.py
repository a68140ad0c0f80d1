"""Multiple choice: packing, unequal numbers of choices, files, errors."""

import numpy as np
import pytest
from small_classifier import CLS, SEP, token_id
from task_cases import CASES

CONTEXTS = ["我想吃鸡蛋。", "", "他去了" * 12, "中文"]
QUESTIONS = ["谁吃", "好", "", "哪"]
CHOICES = [["我", "他", "你你你"], ["好"], ["去", "来"], ["中", "文", "天", "地"]]
X = CONTEXTS, QUESTIONS, CHOICES


@pytest.fixture(scope="module")
def model():
    return CASES["multiple choice"].build()


@pytest.fixture(scope="module")
def logits(model):
    with pytest.warns(UserWarning, match="1 of 4 texts are longer"):
        return model.predict(X, verbose=0)


def test_each_choice_is_read_with_its_context_and_question(model):
    tokens, first_lengths = model.preprocessor.pack(X)
    assert tokens[0].to_list()[2] == [
        CLS,
        *map(token_id, CONTEXTS[0]),
        SEP,
        *map(token_id, "谁吃你你你"),
        SEP,
    ]
    assert first_lengths.to_list()[0] == [8] * 3
    # A long context is truncated at its end, not the choice.
    assert tokens[2].to_list()[0][-3:] == [SEP, token_id("去"), SEP]
    assert len(tokens[2].to_list()[0]) == 29


def test_a_correct_choice_is_given_by_position_or_text(model):
    for y in (["他", "好", "去", "天"], [1, 0, 0, 2], np.array([1.0, 0, 0, 2])):
        assert model.targets(X, y).tolist() == [1, 0, 0, 2]
    # Each position is that of its text, too.
    numbers = CONTEXTS, QUESTIONS, [["0", "1"], ["好"], ["3", "1"], ["2", "0"]]
    assert model.targets(numbers, [1, 0, 1, 0]).tolist() == [1, 0, 1, 0]


def test_a_choice_is_scored_as_alone(model, logits):
    assert logits.shape == (4, 4)
    alone = []
    for i, choices in enumerate(CHOICES):
        assert np.isneginf(logits[i, len(choices) :]).all()
        alone += [(CONTEXTS[i], QUESTIONS[i], [choice]) for choice in choices]
    given = model.predict(tuple(map(list, zip(*alone, strict=True))), verbose=0)
    expected = logits[np.isfinite(logits)]
    np.testing.assert_allclose(given[:, 0], expected, atol=1e-5)
