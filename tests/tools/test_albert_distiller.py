"""Distillation: the student learns to predict like its teacher."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from small_classifier import LABELS, TEXTS, call, small_classifier
from tiers import few

from albert_tf.models import AlbertMultiLabelClassifier
from albert_tf.tools import AlbertDistiller

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
