"""Distillation: the student learns to predict like its teacher."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from small_classifier import LABELS, TEXTS, call, small_classifier
from tiers import few

from albert_tf import AlbertError
from albert_tf.models import AlbertMultiLabelClassifier, AlbertTextClassifier
from albert_tf.tools import AlbertDistiller
from albert_tf.tools.state_distillation import StateLearner, teaching_layer_numbers

KINDS = {
    "logits": {},
    "probabilities": {"activation": "softmax", "pooling_mode": "mean"},
    "multi-label": {"cls": AlbertMultiLabelClassifier, "activation": "sigmoid"},
}
MULTI_HOT = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]] + 3 * [[0, 1, 0]])

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")


def student_of(kwargs=KINDS["logits"], **sizes):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, **sizes}
    return small_classifier(sizes=sizes, seed=1, dropout=0.0, **kwargs)


def divergence(teacher, student):
    """Return the Kullback-Leibler divergence of each row of logits."""
    logs = log_softmax(teacher, -1) - log_softmax(student, -1)
    return np.sum(softmax(teacher, -1) * logs, -1)


@pytest.mark.parametrize("kind", few(KINDS, ("multi-label",)))
def test_the_loss_is_the_divergence_of_softened_probabilities(kind):
    multi_label = kind == "multi-label"
    teacher, student = small_classifier(**KINDS[kind]), student_of(KINDS[kind])
    y = MULTI_HOT if multi_label else LABELS
    given = [call(model, TEXTS).astype("float64") for model in (teacher, student)]
    labelled = student.evaluate(TEXTS, y, verbose=0)[0]
    if multi_label:
        given = [np.stack([1 - p, p], -1) for p in given]
    if kind != "logits":
        given = [np.log(p) for p in given]
    expected = 9 * divergence(given[0] / 3, given[1] / 3).mean()
    same = (given[0].argmax(-1) == given[1].argmax(-1)).mean()

    distiller = AlbertDistiller(teacher, student, 3.0, student_loss_weight=0.25)
    distiller.compile(optimizer=keras.optimizers.SGD(0.0))
    history = distiller.fit(TEXTS, validation_data=(TEXTS, None), verbose=0).history
    assert history == {
        "loss": [pytest.approx(expected, rel=1e-3)],
        "agreement": [pytest.approx(same)],
        "val_loss": [pytest.approx(expected, rel=1e-3)],
        "val_agreement": [pytest.approx(same)],
    }
    history = distiller.fit(TEXTS, y, batch_size=7, verbose=0).history
    both = 0.75 * expected + 0.25 * labelled
    assert history["loss"] == [pytest.approx(both, rel=1e-3)]
    # The student is compiled with its own loss again.
    loss = student.evaluate(TEXTS, y, verbose=0)[0]
    assert loss == pytest.approx(labelled, rel=1e-5)


@pytest.mark.parametrize("is_multi_label", [False, True])
def test_probabilities_from_anywhere_teach_by_the_names_of_their_columns(
    is_multi_label,
):
    draw = np.random.default_rng(0)
    probabilities = draw.uniform(0.02, 1, (len(TEXTS), 3))
    cls = AlbertMultiLabelClassifier if is_multi_label else AlbertTextClassifier
    if not is_multi_label:
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    student = student_of({"cls": cls, "labels": ["a", "b", "c"]})
    logits = call(student, TEXTS).astype("float64")
    taught = np.log(probabilities)
    if is_multi_label:
        logits = np.stack([0 * logits, logits], -1)
        taught = np.stack([np.log(1 - probabilities), taught], -1)
    expected = 4 * divergence(taught / 2, logits / 2).mean()
    columns = [2, 0, 1]
    given = {"labels": ["c", "a", "b"]}
    for teacher in (probabilities[:, columns], lambda x: probabilities[:, columns]):
        distiller = AlbertDistiller(teacher, student, **given)
        distiller.compile(optimizer=keras.optimizers.SGD(0.0))
        history = distiller.fit(TEXTS, verbose=0).history
        assert history["loss"] == [pytest.approx(expected, rel=1e-3)]


def test_rounded_probabilities_are_divided_by_their_sum():
    student = student_of()
    losses = []
    for scale in (1, 1.01):
        distiller = AlbertDistiller(np.full((7, 3), [0.2, 0.3, 0.5]) * scale, student)
        distiller.compile(optimizer=keras.optimizers.SGD(0.0))
        losses += distiller.fit(TEXTS, verbose=0).history["loss"]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize(
    ("teacher", "labels", "message"),
    [
        (np.full((7, 3), 1 / 3), None, "Name the classes of the teacher's columns"),
        (np.full((7, 3), 1 / 3), ["a", "b", "d"], "must be the classes of the student"),
        (
            np.full((6, 3), 1 / 3),
            ["a", "b", "c"],
            r"\[7, 3\]. Received the shape \[6, 3",
        ),
        (np.full((7, 3), 0.5), ["a", "b", "c"], "Those of text 0 sum to 1.5000"),
        (np.full((7, 3), -1.5), ["a", "b", "c"], "between 0 and 1. Those of text 0"),
        (np.full((7, 3), np.nan), ["a", "b", "c"], "between 0 and 1. Those of text 0"),
    ],
)
def test_an_array_that_is_not_of_probabilities_raises(teacher, labels, message):
    student = student_of({"labels": ["a", "b", "c"]})
    with pytest.raises(AlbertError, match=message):
        AlbertDistiller(teacher, student, labels=labels).fit(TEXTS, verbose=0)


def test_an_array_has_no_probabilities_for_other_texts_and_no_hidden_states():
    distiller = AlbertDistiller(np.full((7, 3), 1 / 3), student_of())
    with pytest.raises(AlbertError, match="has none for `validation_data`"):
        distiller.fit(TEXTS, validation_data=(TEXTS, LABELS))
    with pytest.raises(AlbertError, match="need a teacher that is an AlbertTextClas"):
        distiller.fit_hidden_states(TEXTS)


# === Hidden states ===


def test_layers_are_taught_by_layers_spread_evenly():
    assert teaching_layer_numbers(12, 4) == [3, 6, 9, 12]
    assert teaching_layer_numbers(3, 3) == [1, 2, 3]
    assert teaching_layer_numbers(5, 3) == [2, 4, 5]


def test_the_loss_of_hidden_states_is_relative_and_without_padding():
    teacher = small_classifier(sizes={"num_layers": 4})
    student = student_of(num_layers=2)
    learner = StateLearner(teacher.backbone, student.backbone, attention_scores=True)
    features = student.preprocessor(TEXTS)
    loss = learner.compute_loss(x=features, y_pred=learner(features))

    expected = 0
    mask = np.array(features["padding_mask"], bool)
    taught, learned = (
        model.backbone.with_intermediates(attention_scores=True)(features)
        for model in (teacher, student)
    )
    for layer, teaching in ((0, 0), (1, 2), (2, 4)):
        name = "state_projection" if layer else "embedding_projection"
        kernel, bias = learner.get_layer(name).get_weights()
        states = np.array(learned["hidden_states"][layer])[mask] @ kernel + bias
        target = np.array(taught["hidden_states"][teaching])[mask]
        expected += np.square(states - target).sum() / np.square(target).sum()
    for layer, teaching in ((0, 1), (1, 3)):
        scores = np.array(learned["attention_scores"][layer])
        target = np.array(taught["attention_scores"][teaching])
        errors = squares = 0
        for text, length in enumerate(mask.sum(axis=1)):
            part = np.s_[text, :, :length, :length]
            errors += np.square(scores[part] - target[part]).sum()
            squares += np.square(target[part]).sum()
        expected += errors / squares
    assert float(loss) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_hidden_states_train_the_backbone_of_the_student_only():
    teacher, student = small_classifier(), student_of()
    before = [model.get_weights() for model in (teacher, student)]
    distiller = AlbertDistiller(teacher, student)
    history = distiller.fit_hidden_states(
        TEXTS, epochs=12, learning_rate=0.01, verbose=0
    ).history
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    for old, new in zip(before[0], teacher.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    *encoder, kernel, bias = student.get_weights()
    assert not np.array_equal(encoder[0], before[1][0])
    np.testing.assert_array_equal(kernel, before[1][-2])
    distiller.fit(TEXTS, verbose=0)


def test_hidden_states_of_other_tokens_or_heads_raise():
    student = student_of()
    other = small_classifier(lowercase=False)
    with pytest.raises(AlbertError, match="different vocabularies or settings"):
        AlbertDistiller(other, student).fit_hidden_states(TEXTS)
    short = small_classifier(sizes={"max_sequence_length": 20})
    with pytest.raises(AlbertError, match="29 tokens, but the teacher has 20 positi"):
        AlbertDistiller(short, student).fit_hidden_states(TEXTS)
    heads = small_classifier(sizes={"num_heads": 3})
    with pytest.raises(AlbertError, match="as many heads.* Received: 3 and 2"):
        AlbertDistiller(heads, student).fit_hidden_states(TEXTS, attention_scores=True)
