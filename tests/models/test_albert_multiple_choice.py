"""Multiple choice: what is packed, unequal numbers of choices, what is refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_classifier import CLS, SEP, VOCABULARY, randomised, small_backbone, token_id

import albert_tf
from albert_tf.checkpoints import open_checkpoint
from albert_tf.conversion.build import build_model
from albert_tf.models import AlbertMultipleChoice

CONTEXTS = ["我想吃鸡蛋。", "", "他去了" * 12, "中文"]
QUESTIONS = ["谁吃", "好", "", "哪"]
CHOICES = [["我", "他", "你你你"], ["好"], ["去", "来"], ["中", "文", "天", "地"]]
X = CONTEXTS, QUESTIONS, CHOICES


@pytest.fixture(scope="module")
def model():
    return randomised(AlbertMultipleChoice.from_backbone(small_backbone(), VOCABULARY))


def test_each_choice_is_read_with_its_context_and_question(model):
    tokens, first_lengths = model.preprocessor.pack(X)
    assert tokens[0].to_list()[2] == [
        *(CLS, *map(token_id, CONTEXTS[0]), SEP),
        *(*map(token_id, "谁吃你你你"), SEP),
    ]
    assert first_lengths.to_list()[0] == [8] * 3
    # Of a long context the end is cut, not the choice.
    assert tokens[2].to_list()[0][-3:] == [SEP, token_id("去"), SEP]
    assert len(tokens[2].to_list()[0]) == 29
    features = model.preprocessor(X)
    assert {value.shape for value in features.values()} == {(4, 4, 29)}
    assert features["padding_mask"].numpy().any(-1).tolist() == [
        [i < len(choices) for i in range(4)] for choices in CHOICES
    ]
    assert (
        features["segment_ids"].numpy()[0, 2].tolist() == [0] * 8 + [1] * 6 + [0] * 15
    )


def test_an_empty_choice_counts_unless_it_is_at_the_end(model):
    choices = [["我", "", "他"], ["", "好", ""], ["", "", ""]]
    texts = tf.constant(["很"] * 3), tf.constant(["谁"] * 3)
    served = model.text_answers((*texts, tf.constant(choices)), model)
    assert (served["probabilities"].numpy() > 0).tolist() == [
        [True, True, True],
        [True, True, False],
        [False, False, False],
    ]
    assert served["label_id"].numpy()[2] == -1 and min(served["label_id"][:2]) >= 0
    nothing = model.text_answers((*texts, tf.constant(choices[2:] * 3)), model)
    assert nothing["label_id"].numpy().tolist() == [-1] * 3


def test_a_choice_is_scored_as_alone(model):
    logits = model.predict(X, verbose=0)
    assert logits.shape == (4, 4)
    for i, choices in enumerate(CHOICES):
        assert np.isneginf(logits[i, len(choices) :]).all()
        for j, choice in enumerate(choices):
            x = [CONTEXTS[i]], [QUESTIONS[i]], [[choice]]
            alone = model.predict(x, verbose=0)
            np.testing.assert_allclose(alone, [[logits[i, j]]], atol=1e-5)
    assert len(model.predict(([], [], []), verbose=0)) == 0


def test_datasets_are_padded_with_empty_strings(model):
    dense = tf.ragged.constant(CHOICES).to_tensor()
    data = tf.data.Dataset.from_tensor_slices(
        ((CONTEXTS, QUESTIONS, dense), [2, 0, 1, 3])
    )
    given = model.predict(data.map(lambda x, y: (x,)).batch(3), verbose=0)
    np.testing.assert_allclose(given, model.predict(X, verbose=0), atol=1e-5)
    expected = model.evaluate(X, [2, 0, 1, 3], batch_size=2, verbose=0)
    given = model.evaluate(data.batch(2), verbose=0)
    np.testing.assert_allclose(given, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="group_by_length"):
        model.evaluate(data.batch(2), group_by_length=True, verbose=0)


def test_the_loss_is_that_of_the_choices_alone(model):
    logits = model.predict(X, verbose=0).astype("float64")
    log_sums = np.log(np.exp(logits).sum(1))
    y = np.array([2, 0, 1, 3])
    expected = (log_sums - logits[np.arange(4), y]).mean()
    assert model.evaluate(X, y, verbose=0)[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("layout", ["albert_zh", "keras"])
def test_it_comes_back_from_a_checkpoint(model, tmp_path, layout):
    albert_tf.save_checkpoint(model, tmp_path / "there", layout)
    assert albert_tf.inspect_checkpoint(tmp_path / "there").heads == ["choice_head"]
    again = AlbertMultipleChoice.from_checkpoint(tmp_path / "there")
    built = build_model(open_checkpoint(tmp_path / "there"))
    assert type(built) is AlbertMultipleChoice
    expected = model.predict(X, verbose=0)
    np.testing.assert_array_equal(again.predict(X, verbose=0), expected)
    np.testing.assert_array_equal(built.predict(X, verbose=0), expected)


@pytest.mark.slow
def test_it_learns():
    keras.utils.set_random_seed(1)
    backbone = small_backbone(num_layers=1)
    model = AlbertMultipleChoice.from_backbone(backbone, VOCABULARY, dropout=0.0)
    model.compile(learning_rate=1e-2)
    rng = np.random.default_rng(0)
    choices = [list(rng.permutation(["好", "差", "很"])) for _ in range(24)]
    x = ["我想"] * 24, ["谁"] * 24, [list(map(str, row)) for row in choices]
    y = [row.index("好") for row in choices]
    model.fit(x, y, epochs=4, batch_size=8, verbose=0)
    assert (model.predict(x, verbose=0).argmax(-1) == y).all()


def test_long_contexts_are_counted(model):
    with pytest.warns(UserWarning, match="1 of 4 texts are longer"):
        model.predict(X, verbose=0)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, [2, 1, 0, 0], "Element 1 of `y` is 1, but its question has 1 choices"),
        (X, [2, 0, 0], "4 texts and 3 labels"),
        (X[:2], [0, 0, 0, 0], "tuple .contexts, questions, choices.* tuple of 2"),
        ((["我"], ["谁"], [[]]), [0], "Element 0 is "),
        ((["我"], ["谁"], ["他"]), [0], "Element 0 is '他'"),
        ((["我"], ["谁"], []), [0], "0 lists and 1 contexts"),
    ],
)
def test_what_is_refused(model, x, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(x, y, verbose=0)


def test_the_model_for_strings(model, tmp_path):
    albert_tf.export.saved_model(model, tmp_path / "1")
    serve = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    given = serve(
        context=tf.constant(CONTEXTS),
        question=tf.constant(QUESTIONS),
        choices=tf.ragged.constant(CHOICES).to_tensor(),
    )
    logits = model.predict(X, verbose=0)
    assert given["label_id"].numpy().tolist() == logits.argmax(-1).tolist()
    expected = tf.nn.softmax(logits).numpy()
    np.testing.assert_allclose(given["probabilities"], expected, atol=1e-5)
