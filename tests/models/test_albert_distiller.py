"""Distillation: the student learns to predict like its teacher."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from small_classifier import (
    LABELS,
    OTHERS,
    TEXTS,
    VOCABULARY,
    call,
    randomised,
    small_backbone,
    small_classifier,
)

from albert_tf.models import (
    AlbertDistiller,
    AlbertMultiLabelClassifier,
    AlbertTextClassifier,
)

KINDS = {
    "logits": {},
    "probabilities": {"activation": "softmax", "pooling_mode": "mean"},
    "multi-label": {"cls": AlbertMultiLabelClassifier},
    "multi-label probabilities": {
        "cls": AlbertMultiLabelClassifier,
        "activation": "sigmoid",
    },
}
MULTI_HOT = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]] + 3 * [[0, 1, 0]])

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")


def student_of(kwargs=KINDS["logits"], **sizes):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, **sizes}
    return small_classifier(sizes=sizes, seed=1, dropout=0.0, **kwargs)


def evaluate(distiller, *data, **kwargs):
    return distiller.evaluate(*data, verbose=0, return_dict=True, **kwargs)


def divergence(teacher, student):
    """Return the Kullback-Leibler divergence of each row of logits."""
    logs = log_softmax(teacher, -1) - log_softmax(student, -1)
    return np.sum(softmax(teacher, -1) * logs, -1)


@pytest.mark.parametrize(
    "kind",
    [
        "logits",
        "multi-label probabilities",
        pytest.param("probabilities", marks=pytest.mark.slow),
        pytest.param("multi-label", marks=pytest.mark.slow),
    ],
)
def test_the_loss_is_the_divergence_of_softened_probabilities(kind):
    multi_label = "multi" in kind
    teacher, student = small_classifier(**KINDS[kind]), student_of(KINDS[kind])
    y = MULTI_HOT if multi_label else LABELS
    given = [call(model, TEXTS).astype("float64") for model in (teacher, student)]
    labelled = student.evaluate(TEXTS, y, verbose=0)[0]
    # Convert to logits, and per class for a multi-label model.
    if "probabilities" in kind:
        given = [np.log(p / (1 - p)) if multi_label else np.log(p) for p in given]
    if multi_label:
        given = [np.stack([np.zeros_like(x), x], -1) for x in given]
    expected = 9 * divergence(given[0] / 3, given[1] / 3).mean()
    same = (given[0].argmax(-1) == given[1].argmax(-1)).mean()

    distiller = AlbertDistiller(teacher, student, 3.0, student_loss_weight=0.25)
    assert evaluate(distiller, TEXTS) == {
        "loss": pytest.approx(expected, rel=1e-3),
        "agreement": pytest.approx(same),
    }
    scores = evaluate(distiller, TEXTS, y, batch_size=7)
    assert scores["loss"] == pytest.approx(0.75 * expected + 0.25 * labelled, rel=1e-3)


@pytest.mark.slow
@pytest.mark.traced
def test_the_student_learns_from_unlabelled_texts():
    rng = np.random.default_rng(0)
    characters = VOCABULARY[5:60]
    texts = ["".join(rng.choice(characters, rng.integers(2, 12))) for _ in range(160)]
    teacher = small_classifier()
    # The student's vocabulary has another order: the teacher reads texts, not ids.
    vocabulary = VOCABULARY[:5] + VOCABULARY[:4:-1]
    backbone = small_backbone(num_layers=1, num_heads=2, hidden_dim=8)
    student = randomised(AlbertTextClassifier.from_backbone(backbone, vocabulary, 3), 1)
    before = [np.array(weight) for weight in teacher.weights]

    distiller = AlbertDistiller(teacher, student)
    distiller.compile(learning_rate=2e-2)
    untaught = evaluate(distiller, texts[128:])
    history = distiller.fit(
        texts[:128], validation_data=(texts[128:], None), epochs=5, verbose=0
    ).history
    taught = evaluate(distiller, texts[128:])
    assert taught["agreement"] > untaught["agreement"] + 0.2
    assert taught["loss"] < 0.7 * untaught["loss"]
    assert history["val_agreement"][-1] == pytest.approx(taught["agreement"])
    # The teacher is unchanged and still trainable.
    assert all(map(np.array_equal, before, teacher.weights))
    assert len(teacher.trainable_variables) == len(teacher.weights)


def test_pairs_with_labels_are_learned():
    teacher, student = small_classifier(), student_of()
    distiller = AlbertDistiller(teacher, student)
    distiller.compile(learning_rate=2e-2)
    before = evaluate(distiller, (TEXTS, OTHERS))["loss"]
    distiller.fit((TEXTS, OTHERS), LABELS, epochs=2, batch_size=7, verbose=0)
    assert evaluate(distiller, (TEXTS, OTHERS))["loss"] < before
    assert student.pairs
    # It is compiled for its own task again.
    assert student.evaluate((TEXTS, OTHERS), LABELS, verbose=0)


def test_models_that_cannot_be_distilled_raise():
    teacher, student = small_classifier(labels=["坏", "中", "好"]), student_of()
    for models, kwargs, message in (
        ((teacher, small_classifier(2)), {}, "same `num_classes`.*3 and 2"),
        (
            (teacher, small_classifier(labels=["好", "中", "坏"])),
            {},
            "same `labels`",
        ),
        ((teacher, teacher), {}, "share weights"),
        ((teacher, student), {"student_loss_weight": 2}, "student_loss_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            AlbertDistiller(*models, **kwargs)
