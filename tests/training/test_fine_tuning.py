"""Fine-tuning: the best epoch is kept, and an interrupted run is resumed."""

import json
import pathlib
import shutil
import signal
from contextlib import nullcontext
from unittest import mock

import keras
import numpy as np
import pytest

from albert_tf.models import (
    AlbertBackbone,
    AlbertMultiLabelClassifier,
    AlbertTextClassifier,
)
from albert_tf.training.fine_tuning import FineTuning, fine_tune
from albert_tf.training.run_state import BestEpochState, hold_state

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"好坏很不太差"]
# Three of four are 1: a model that always predicts 1 has an accuracy of 0.75.
LABELS = np.array([1, 1, 1, 0])
TEXTS = ["很好", "不坏", "太好", "很差"]

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")


def token_ids(count):
    ones = np.ones([count, 6], "int32")
    ids = np.arange(ones.size).reshape(ones.shape) % len(VOCABULARY)
    return {"token_ids": ids, "segment_ids": 0 * ones, "padding_mask": ones}


def new_backbone():
    keras.utils.set_random_seed(0)
    sizes = (len(VOCABULARY), 1, 2, 4, 8, 16)
    return AlbertBackbone(*sizes, max_sequence_length=16)


def new_classifier(**compiled):
    """A classifier of token ids."""
    classifier = AlbertTextClassifier(new_backbone(), 2)
    classifier.compile(learning_rate=1e-2, **compiled)
    return classifier


class Spy(keras.callbacks.Callback):
    """Record each epoch, decide its accuracy on dev, or interrupt it.

    Args:
        accuracies: list of 0.25 or 0.75, the accuracy on dev by epoch.
        interrupted: int, the epoch (from 1) to interrupt at once.
        signalled: the epoch (from 1) and the batch in which to send SIGTERM.
        diverging: the epoch (from 1) and the batch after which a weight is NaN.

    With `fills_disk`, no space is left after the training.
    """

    def __init__(self, accuracies=(), interrupted=None, diverging=None, signalled=None):
        super().__init__()
        self.accuracies, self.interrupted = list(accuracies), interrupted
        self.diverging, self.signalled = diverging, signalled
        self.epochs, self.kernels = [], []
        self.fills_disk, self._disk = False, pytest.MonkeyPatch()

    def free_disk(self):
        """Undo `fills_disk`."""
        self.fills_disk = False
        self._disk.undo()

    def on_train_end(self, logs=None):
        if self.fills_disk:
            full = mock.Mock(free=0)
            self._disk.setattr(shutil, "disk_usage", lambda path: full)

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(epoch + 1)

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epochs[-1], batch) == self.signalled:
            signal.raise_signal(signal.SIGTERM)

    def on_train_batch_end(self, batch, logs=None):
        self.kernels.append(np.array(self.model.output_dense.kernel))
        if self.epochs[-1] == self.interrupted:
            raise KeyboardInterrupt
        if (self.epochs[-1], batch) == self.diverging:
            self.model.output_dense.kernel.assign(np.full((8, 2), np.nan))

    def on_test_begin(self, logs=None):
        epoch = self.epochs[-1]
        if self.accuracies:
            often = self.accuracies[epoch - 1] == 0.75
            self.model.output_dense.kernel.assign(np.full((8, 2), epoch * 1e-3))
            self.model.output_dense.bias.assign([-9, 9] if often else [9, -9])


SETTINGS = {"train": "train.tsv", "dropout": None}


def train(output, spy=None, classifier=None, epochs=3, labels=LABELS, **options):
    """Train with two steps per epoch."""
    others = {x: options.pop(x) for x in ("progress", "verbose") if x in options}
    options = {"settings": SETTINGS, "epochs": epochs, "batch_size": 4, **options}
    return fine_tune(
        classifier or new_classifier(),
        (token_ids(7), np.resize(labels, 7)),
        (token_ids(4), LABELS),
        output,
        FineTuning(**options),
        callbacks=[spy] if spy else [],
        **others,
    )


# === The best epoch ===


def test_the_best_epoch_is_kept(tmp_path):
    output = tmp_path / "deep" / "model"
    output.mkdir(parents=True)
    (output / "notes.txt").write_text("mine")
    accuracies = [0.25, 0.75, 0.25]
    classifier = new_classifier()
    metrics = train(output, Spy(accuracies), classifier)
    assert metrics["history"]["val_accuracy"] == accuracies
    assert metrics["best_epoch"] == 2 and metrics["dev"]["accuracy"] == 0.75
    assert metrics["dev"]["loss"] == metrics["history"]["val_loss"][1]
    np.testing.assert_array_equal(
        classifier.output_dense.kernel, np.full((8, 2), 2e-3, "f")
    )
    assert json.loads(json.dumps(metrics)) == metrics and metrics["seconds"] > 0
    # A new head does not compete.
    assert "start" not in metrics
    # Other files stay.
    assert (output / "notes.txt").read_text() == "mine"
    assert [path.name for path in output.parent.iterdir()] == ["model"]


def test_of_equal_epochs_the_one_with_the_better_macro_f1_is_kept(tmp_path):
    scores = [
        {"val_accuracy": 0.75, "val_macro_f1": 0.43, "val_loss": 0.1},
        {"val_accuracy": 0.75, "val_macro_f1": 0.73, "val_loss": 0.3},
        {"val_accuracy": 0.75, "val_macro_f1": 0.73, "val_loss": 0.2},
        {"val_accuracy": 0.50, "val_macro_f1": 0.90, "val_loss": 0.1},
    ]
    history = {name: [epoch[name] for epoch in scores] for name in scores[0]}
    state = BestEpochState(tmp_path, "val_accuracy")
    state.history = history
    assert state.best_epoch == 3
    del history["val_macro_f1"]
    assert state.best_epoch == 1


@pytest.mark.parametrize(
    ("started", "best", "interrupted"),
    [
        (0.75, 0, 1),
        (0.25, 2, None),
        pytest.param(0.25, 2, 2, marks=pytest.mark.slow),
        pytest.param(0.75, 0, None, marks=pytest.mark.nightly),
        pytest.param(0.75, 0, 2, marks=pytest.mark.nightly),
        pytest.param(0.25, 2, 1, marks=pytest.mark.nightly),
    ],
)
def test_a_trained_head_competes_as_epoch_0(tmp_path, started, best, interrupted):
    """An equal score needs no training, and patience counts from epoch 0."""

    def start():
        classifier = new_classifier()
        classifier.output_dense.bias.assign([-9, 9] if started == 0.75 else [9, -9])
        classifier.starts_trained = True
        return classifier

    spy, classifier = Spy([0.25, 0.75], interrupted), start()
    options = {"patience": 2, "epochs": 5}
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, spy, start(), **options)
        spy.interrupted = None
    metrics = train(tmp_path, Spy([0.25, 0.75] * 2), classifier, **options)
    assert metrics["best_epoch"] == best and metrics["dev"]["accuracy"] == 0.75
    assert metrics["start"]["accuracy"] == started
    assert metrics["start"].keys() == metrics["dev"].keys() == {"accuracy", "loss"}
    assert len(metrics["history"]["val_accuracy"]) == (4 if best else 2)
    pairs = zip(start().weights, classifier.weights, strict=True)
    assert all(np.array_equal(*pair) for pair in pairs) == (best == 0)


def test_the_preset_is_the_model_that_was_scored(tmp_path):
    """Train on texts, like the command line."""
    classifier = AlbertTextClassifier.from_backbone(
        new_backbone(), VOCABULARY, 2, labels=["差评", "好评"]
    )
    classifier.compile(learning_rate=1e-2)
    data = (TEXTS, LABELS.tolist())
    options = FineTuning(epochs=1)
    metrics = fine_tune(classifier, data, data, tmp_path / "model", options)
    scores = classifier.evaluate(*data, return_dict=True, verbose=0)
    assert metrics["dev"] == pytest.approx(scores, rel=1e-5)
    loaded = AlbertTextClassifier.from_preset(str(tmp_path / "model"))
    assert loaded.labels == ["差评", "好评"]
    first, second = (x.predict(TEXTS, verbose=0) for x in (loaded, classifier))
    assert np.abs(first - second).max() < 1e-6


def test_class_weights_reach_the_loss(tmp_path):
    metrics = train(tmp_path, epochs=1, class_weight={0: 0.0, 1: 0.0})
    assert metrics["history"]["loss"] == [0.0]


# === An interrupted run ===


def test_interrupted_while_weights_were_written(tmp_path):
    save_weights = keras.Model.save_weights

    def truncate(self, filepath, **kwargs):
        save_weights(self, filepath, **kwargs)
        data = pathlib.Path(filepath).read_bytes()
        pathlib.Path(filepath).write_bytes(data[: len(data) // 2])
        raise KeyboardInterrupt

    with (
        mock.patch.object(keras.Model, "save_weights", truncate),
        pytest.raises(KeyboardInterrupt),
    ):
        train(tmp_path, Spy([0.75, 0.25]), epochs=2)
    metrics = train(tmp_path, Spy([0.75, 0.25]), epochs=2)
    assert metrics["history"]["val_accuracy"] == [0.75, 0.25]
    assert metrics["best_epoch"] == 1


@pytest.mark.parametrize(
    ("spy", "left"),
    [
        pytest.param(
            Spy(interrupted=3), 2, id="between epochs", marks=pytest.mark.slow
        ),
        pytest.param(Spy(signalled=(2, 0)), 3, id="second epoch"),
        pytest.param(Spy(signalled=(1, 0)), 5, id="first", marks=pytest.mark.nightly),
    ],
)
def test_a_resumed_run_ends_as_if_never_interrupted(tmp_path, spy, left):
    """Averages, accumulation, frozen embeddings and scores of the caller resume.

    After a signal within an epoch, so do its order, its metrics and dropout.
    """
    compiled = {"ema_momentum": 0.8, "gradient_accumulation_steps": 3}
    seen = []
    options = {
        "freeze": "embeddings",
        "maximise": "steps",
        "progress": lambda *steps: seen.append(steps),
        "scores": lambda model: {"steps": int(model.optimizer.variables[0])},
    }
    whole, cut, resumed = (new_classifier(**compiled) for _ in range(3))
    for model in (whole, cut, resumed):
        model.starts_trained = True
    expected = train(tmp_path / "whole", Spy(), whole, **options)
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "cut", spy, cut, **options)
    assert signal.getsignal(signal.SIGTERM) == handler
    keras.utils.set_random_seed(7)
    rest = Spy()
    metrics = train(tmp_path / "cut", rest, resumed, **options)
    assert len(rest.kernels) == left
    assert seen[-left:] == [(step, 6) for step in range(7 - left, 7)]
    assert metrics["best_epoch"] == expected["best_epoch"] == 3
    assert metrics["start"] == expected["start"]
    for score, values in expected["history"].items():
        assert metrics["history"][score] == pytest.approx(values, rel=1e-5), score
    for first, second in zip(whole.weights, resumed.weights, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)


def test_tuned_values_of_an_interrupted_training_are_those_before(tmp_path):
    def tune(model):
        # Thresholds of the probabilities that people will see.
        model.thresholds = [0.25, 0.75 if model.temperature == 1 else 0.5]
        model.null_threshold = 3.0

    losses = []

    def calibrate(model, training_loss):
        losses.append(training_loss)
        model.temperature = 2.0

    classifier = AlbertMultiLabelClassifier(new_backbone(), 2, thresholds=[0.5, 0.5])
    classifier.null_threshold = 1.0
    classifier.compile(learning_rate=1e-2)
    rows = np.eye(2)[LABELS]
    train, dev = (token_ids(8), np.tile(rows, [2, 1])), (token_ids(4), rows)
    stopped, complete = pytest.raises(KeyboardInterrupt), nullcontext()
    for epoch, end, expected in (
        (2, stopped, ([0.5, 0.5], 1.0, 1.0)),
        (None, complete, ([0.25, 0.5], 3.0, 2.0)),
    ):
        options = FineTuning(
            epochs=2, maximise="pr_auc", tune=tune, calibrate=calibrate
        )
        spies = [Spy(interrupted=epoch)]
        with end:
            metrics = fine_tune(
                classifier, train, dev, tmp_path, options, callbacks=spies
            )
        tuned = classifier.null_threshold, classifier.temperature
        assert (list(classifier.thresholds), *tuned) == expected
    assert losses == [metrics["history"]["loss"][metrics["best_epoch"] - 1]]


def test_a_signal_that_the_program_ignores_stays_ignored(tmp_path):
    handler = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        spy = Spy(signalled=(1, 0))
        assert train(tmp_path, spy, epochs=1)["best_epoch"] == 1
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, handler)


def test_patience_counts_the_epochs_before_a_restart(tmp_path):
    spy = Spy([0.25, 0.75, 0.25, 0.75, 0.25, 0.25], interrupted=3)
    options = {"epochs": 6, "patience": 2}
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, spy, **options)
    for changed, differs in (
        ({"settings": {"train": "b.tsv"}}, "train: 'train.tsv', now 'b.tsv'"),
        ({"labels": LABELS[::-1]}, "other data"),
    ):
        with pytest.raises(ValueError, match=f"another training.*{differs}.*remove"):
            train(tmp_path, **{**options, **changed})
    spy.interrupted = None
    # On a full disk the trained model is kept, and not trained again.
    spy.fills_disk = True
    with pytest.raises(OSError, match="MB are needed"):
        train(tmp_path, spy, **options)
    spy.free_disk()
    assert [path.name for path in tmp_path.iterdir()] == [".training"]
    metrics = train(tmp_path, spy, **options)
    assert spy.epochs == [1, 2, 3, 3, 4]
    assert metrics["history"]["val_accuracy"] == [0.25, 0.75, 0.25, 0.75]
    assert metrics["best_epoch"] == 2 and (tmp_path / "task.json").exists()


def test_a_diverging_training_stops_and_keeps_the_last_finite_state(tmp_path):
    """The loss shows it at once, but not the last update of an epoch."""
    with pytest.raises(ValueError, match="diverged.*Nothing was saved yet"):
        train(tmp_path, Spy(diverging=(1, 0)))
    with pytest.raises(ValueError, match="diverged.*epoch 1 is kept.*learning rate"):
        train(tmp_path, Spy(diverging=(2, 1)))
    spy = Spy()
    metrics = train(tmp_path, spy)
    assert spy.epochs == [2, 3] and np.isfinite(metrics["history"]["loss"]).all()


def test_two_trainings_at_a_time(tmp_path):
    # Before the first epoch there is nothing to lose.
    with hold_state(tmp_path, {"steps": 3}):
        pass
    with hold_state(tmp_path, {"steps": 4}):
        with (
            pytest.raises(BlockingIOError, match="Another process"),
            hold_state(tmp_path, {"steps": 4}),
        ):
            pass
        # A host that writes nothing is no other training.
        with hold_state(tmp_path, {"steps": 5}, writes=False):
            pass
    assert json.loads((tmp_path / "identity.json").read_text()) == {"steps": 4}


# === Freezing and averages ===


@pytest.mark.parametrize("freeze", ["embeddings", "encoder"])
def test_a_frozen_part_stays_and_is_trainable_in_the_preset(tmp_path, freeze):
    before = {weight.path: np.array(weight) for weight in new_backbone().weights}
    model = new_classifier()
    train(tmp_path, None, model, epochs=1, freeze=freeze)
    moved = [
        weight.path
        for weight in model.backbone.weights
        if not np.array_equal(weight, before[weight.path])
    ]
    assert not any(path.startswith("embedding") for path in moved)
    assert bool(moved) == (freeze == "embeddings")
    assert np.any(model.output_dense.bias)
    loaded = AlbertTextClassifier.from_preset(str(tmp_path))
    assert len(loaded.trainable_variables) == len(loaded.weights)
