"""Adaptation: a model learns unlabelled texts, exactly also after an interruption."""

import signal

import keras
import numpy as np
import pytest
from small_classifier import TEXTS, small_classifier

from albert_tf import AlbertError
from albert_tf.models import AlbertMaskedLM, AlbertTextClassifier
from albert_tf.tools import Adaptation, adapt

OPTIONS = Adaptation(epochs=2, batch_size=3, seed=5)
SIZES = {"num_layers": 1, "num_heads": 4}

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")


def new_model():
    keras.utils.set_random_seed(3)
    classifier = small_classifier(sizes=SIZES)
    vocabulary = classifier.preprocessor.tokenizer.get_vocabulary()
    model = AlbertMaskedLM.from_backbone(classifier.backbone, vocabulary)
    model.compile(learning_rate=1e-2)
    return model


class Signal(keras.callbacks.Callback):
    """Send SIGTERM before a step of an epoch."""

    def __init__(self, epoch, step):
        super().__init__()
        self.place, self.epoch = (epoch, step), 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == self.place:
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param((0, 0), id="epoch 1"),
        pytest.param((1, 0), id="epoch 2", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_adaptation_ends_with_the_same_weights(tmp_path, place):
    whole = new_model()
    metrics = adapt(whole, TEXTS, tmp_path / "whole", OPTIONS)
    resumed = new_model()
    with pytest.raises(KeyboardInterrupt, match="resumes"):
        adapt(resumed, TEXTS, tmp_path / "resumed", OPTIONS, [Signal(*place)])
    resumed = new_model()
    again = adapt(resumed, TEXTS, tmp_path / "resumed", OPTIONS)
    for one, other in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again["history"] == metrics["history"]


@pytest.mark.slow
def test_a_task_starts_from_an_adapted_checkpoint(tmp_path):
    model = new_model()
    before = model.backbone.get_weights()
    # Six of them have a letter.
    texts = [*TEXTS, TEXTS[0], " "]
    metrics = adapt(model, texts, tmp_path / "adapted", OPTIONS)
    assert (metrics["texts"], metrics["epochs"]) == (6, 2)
    assert len(metrics["history"]["loss"]) == 2
    task = AlbertTextClassifier.from_checkpoint(tmp_path / "adapted", num_classes=2)
    weights = task.backbone.get_weights()
    for one, other in zip(model.backbone.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(one, other)
    assert max(np.abs(a - b).max() for a, b in zip(before, weights, strict=True)) > 1e-3


@pytest.mark.slow
def test_minutes_bound_the_texts_of_an_adaptation(tmp_path):
    steps = []
    options = Adaptation(minutes=1e-9, batch_size=3)
    model = new_model()
    metrics = adapt(
        model, TEXTS, tmp_path, options, progress=lambda *numbers: steps.append(numbers)
    )
    assert (metrics["texts"], metrics["epochs"]) == (3, 1)
    assert steps == [(1, 1)]


def test_wrong_arguments_of_an_adaptation_are_refused(tmp_path):
    with pytest.raises(AlbertError, match="no texts to adapt to"):
        adapt(new_model(), ["", " "], tmp_path)
    with pytest.raises(AlbertError, match="`minutes` must be a positive number"):
        Adaptation(minutes=0)
    adapt(new_model(), TEXTS, tmp_path, OPTIONS)
    with pytest.raises(AlbertError, match="state of another training.*texts"):
        adapt(new_model(), TEXTS[:4], tmp_path, OPTIONS)
