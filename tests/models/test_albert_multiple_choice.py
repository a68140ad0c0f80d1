"""Multiple choice: packing, unequal numbers of choices, files, errors."""

import numpy as np
import pytest
import tensorflow as tf
from small_classifier import CLS, SEP, VOCABULARY, randomised, small_backbone, token_id

import albert_tf
from albert_tf.checkpoints import open_checkpoint
from albert_tf.models import AlbertMultipleChoice
from albert_tf.models.building import build_model

CONTEXTS = ["我想吃鸡蛋。", "", "他去了" * 12, "中文"]
QUESTIONS = ["谁吃", "好", "", "哪"]
CHOICES = [["我", "他", "你你你"], ["好"], ["去", "来"], ["中", "文", "天", "地"]]
X = CONTEXTS, QUESTIONS, CHOICES
Y = [2, 0, 1, 3]


@pytest.fixture(scope="module")
def model():
    return randomised(AlbertMultipleChoice.from_backbone(small_backbone(), VOCABULARY))


@pytest.fixture(scope="module")
def logits(model):
    with pytest.warns(UserWarning, match="1 of 4 texts are longer"):
        return model.predict(X, verbose=0)


def test_each_choice_is_read_with_its_context_and_question(model):
    tokens, first_lengths = model.preprocessor.pack(X)
    assert tokens[0].to_list()[2] == [
        *(CLS, *map(token_id, CONTEXTS[0]), SEP),
        *(*map(token_id, "谁吃你你你"), SEP),
    ]
    assert first_lengths.to_list()[0] == [8] * 3
    # A long context is truncated at its end, not the choice.
    assert tokens[2].to_list()[0][-3:] == [SEP, token_id("去"), SEP]
    assert len(tokens[2].to_list()[0]) == 29
    features = model.preprocessor(X)
    assert {value.shape for value in features.values()} == {(4, 4, 29)}
    assert features["padding_mask"].numpy().any(-1).tolist() == [
        [i < len(choices) for i in range(4)] for choices in CHOICES
    ]
    segment_ids = features["segment_ids"].numpy()[0, 2]
    assert segment_ids.tolist() == [0] * 8 + [1] * 6 + [0] * 15


def test_a_choice_is_scored_as_alone(model, logits):
    assert logits.shape == (4, 4)
    alone = []
    for i, choices in enumerate(CHOICES):
        assert np.isneginf(logits[i, len(choices) :]).all()
        alone += [(CONTEXTS[i], QUESTIONS[i], [choice]) for choice in choices]
    given = model.predict(tuple(map(list, zip(*alone, strict=True))), verbose=0)
    expected = logits[np.isfinite(logits)]
    np.testing.assert_allclose(given[:, 0], expected, atol=1e-5)
    assert len(model.predict(([], [], []), verbose=0)) == 0


def test_the_loss_and_datasets_padded_with_empty_strings(model, logits):
    log_sums = np.log(np.exp(logits.astype("float64")).sum(1))
    loss = (log_sums - logits[np.arange(4), Y]).mean()
    expected = model.evaluate(X, Y, batch_size=2, verbose=0)
    assert expected[0] == pytest.approx(loss, abs=1e-5)
    dense = tf.ragged.constant(CHOICES).to_tensor()
    data = tf.data.Dataset.from_tensor_slices(((CONTEXTS, QUESTIONS, dense), Y))
    given = model.predict(data.map(lambda x, y: (x,)).batch(3), verbose=0)
    np.testing.assert_allclose(given, logits, atol=1e-5)
    given = model.evaluate(data.batch(2), verbose=0)
    np.testing.assert_allclose(given, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="group_by_length"):
        model.evaluate(data.batch(2), group_by_length=True, verbose=0)


@pytest.mark.parametrize("layout", ["albert_zh", "keras"])
def test_a_checkpoint_restores_it(model, logits, tmp_path, layout):
    albert_tf.save_checkpoint(model, tmp_path / "there", layout)
    assert albert_tf.inspect_checkpoint(tmp_path / "there").heads == ["choice_head"]
    built = build_model(open_checkpoint(tmp_path / "there"))
    assert type(built) is AlbertMultipleChoice
    np.testing.assert_array_equal(built.predict(X, verbose=0), logits)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, [2, 1, 0, 0], "Element 1 of `y` is 1, but its question has 1 choices"),
        (X, [2, 0, 0], "4 texts and 3 labels"),
        (X[:2], [0, 0, 0, 0], "tuple .contexts, questions, choices.* tuple of 2"),
        ((["我"], ["谁"], ["他"]), [0], "Element 0 is '他'"),
        ((["我"], ["谁"], []), [0], "0 lists and 1 contexts"),
    ],
)
def test_wrong_questions_and_answers_raise(model, x, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(x, y, verbose=0)


def test_answers_to_string_tensors(model, logits):
    contexts, questions = tf.constant(CONTEXTS), tf.constant(QUESTIONS)
    choices = tf.ragged.constant(CHOICES).to_tensor()
    given = model.text_answers((contexts, questions, choices), model)
    assert given["label_id"].numpy().tolist() == logits.argmax(-1).tolist()
    expected = tf.nn.softmax(logits).numpy()
    np.testing.assert_allclose(given["probabilities"], expected, atol=1e-5)
    # An empty choice counts unless it is at the end.
    choices = tf.constant([["我", "", "他"], ["", "好", ""], [""] * 3])
    given = model.text_answers((contexts[:3], questions[:3], choices), model)
    counted = [[True] * 3, [True, True, False], [False] * 3]
    assert (given["probabilities"].numpy() > 0).tolist() == counted
    assert given["label_id"].numpy()[2] == -1
