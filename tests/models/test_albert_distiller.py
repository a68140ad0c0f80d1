"""Distillation: the student learns to predict like its teacher."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from small_classifier import (
    LABELS,
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


@pytest.mark.parametrize(
    "kind",
    ["logits", "multi-label", pytest.param("probabilities", marks=pytest.mark.slow)],
)
def test_the_loss_is_the_divergence_of_softened_probabilities(kind):
    multi_label = kind == "multi-label"
    teacher, student = small_classifier(**KINDS[kind]), student_of(KINDS[kind])
    y = MULTI_HOT if multi_label else LABELS
    given = [call(model, TEXTS).astype("float64") for model in (teacher, student)]
    labelled = student.evaluate(TEXTS, y, verbose=0)[0]
    if kind == "probabilities":
        given = [np.log(p) for p in given]
    if multi_label:
        given = [np.stack([np.zeros_like(x), x], -1) for x in given]
    expected = 9 * divergence(given[0] / 3, given[1] / 3).mean()
    same = (given[0].argmax(-1) == given[1].argmax(-1)).mean()

    distiller = AlbertDistiller(teacher, student, 3.0, student_loss_weight=0.25)
    distiller.compile(optimizer=keras.optimizers.SGD(0.0))
    assert distiller.fit(TEXTS, verbose=0).history == {
        "loss": [pytest.approx(expected, rel=1e-3)],
        "agreement": [pytest.approx(same)],
    }
    history = distiller.fit(TEXTS, y, batch_size=7, verbose=0).history
    both = 0.75 * expected + 0.25 * labelled
    assert history["loss"] == [pytest.approx(both, rel=1e-3)]
    # The student is compiled with its own loss again.
    loss = student.evaluate(TEXTS, y, verbose=0)[0]
    assert loss == pytest.approx(labelled, rel=1e-5)


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

    def agreement():
        first, second = (call(x, texts[128:]).argmax(-1) for x in (student, teacher))
        return np.mean(first == second)

    untaught = agreement()
    distiller = AlbertDistiller(teacher, student)
    distiller.compile(learning_rate=2e-2)
    dev = (texts[128:], None)
    history = distiller.fit(texts[:128], validation_data=dev, epochs=5, verbose=0)
    assert agreement() > untaught + 0.2
    assert history.history["val_agreement"][-1] == pytest.approx(agreement())
    assert history.history["val_loss"][-1] < 0.7 * history.history["loss"][0]
    # The teacher is unchanged.
    assert all(map(np.array_equal, before, teacher.weights))
