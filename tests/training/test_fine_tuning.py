"""Fine-tuning: the best epoch is kept, and an interrupted run is resumed."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from unittest import mock

import keras
import numpy as np
import pytest

from albert_tf.models import (
    AlbertBackbone,
    AlbertTextClassifier,
    AlbertTextEmbedder,
)
from albert_tf.training.fine_tuning import fine_tune

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"好坏很不太差"]
# Three of four are 1: a model that always says so is right in 75%.
LABELS = np.array([1, 1, 1, 0])
TEXTS = ["很好", "不坏", "太好", "很差"]

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")


def token_ids(count):
    ones = np.ones([count, 6], "int32")
    ids = np.arange(ones.size).reshape(ones.shape) % len(VOCABULARY)
    return {"token_ids": ids, "segment_ids": 0 * ones, "padding_mask": ones}


def new_backbone():
    keras.utils.set_random_seed(0)
    return AlbertBackbone(
        vocabulary_size=len(VOCABULARY),
        num_layers=1,
        num_heads=2,
        embedding_dim=4,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=16,
    )


def new_classifier():
    """A classifier of token ids."""
    classifier = AlbertTextClassifier(new_backbone(), 2)
    classifier.compile(learning_rate=1e-2)
    return classifier


class Spy(keras.callbacks.Callback):
    """Record each epoch, decide its accuracy on dev, or interrupt it.

    Args:
        accuracies: list of 0.25 or 0.75, the accuracy on dev by epoch.
        cut_off_in: int, the epoch (from 1) to interrupt as by Ctrl-C.
    """

    def __init__(self, accuracies=(), cut_off_in=None):
        super().__init__()
        self.accuracies = list(accuracies)
        self.cut_off_in = cut_off_in
        self.epochs = []
        self.steps_before = []
        self.weights = {}

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(epoch + 1)
        self.steps_before.append(int(self.model.optimizer.iterations))

    def on_train_batch_end(self, batch, logs=None):
        if self.epochs[-1] == self.cut_off_in and batch == 0:
            raise KeyboardInterrupt

    def on_test_begin(self, logs=None):
        epoch = self.epochs[-1]
        if epoch <= len(self.accuracies):
            often = self.accuracies[epoch - 1] == 0.75
            self.model.output_dense.kernel.assign(np.full((8, 2), epoch * 1e-3))
            self.model.output_dense.bias.assign([-9, 9] if often else [9, -9])

    def on_epoch_end(self, epoch, logs=None):
        self.weights[epoch + 1] = self.model.get_weights()


@contextlib.contextmanager
def watched_by(spy):
    """Let a `Spy` watch the trainings inside."""
    fit = keras.Model.fit

    def watched_fit(self, *args, callbacks=(), **kwargs):
        return fit(self, *args, callbacks=[*callbacks, spy], **kwargs)

    with mock.patch.object(keras.Model, "fit", watched_fit):
        yield


@pytest.fixture
def watch():
    """Let a `Spy` watch the trainings of the test."""
    with contextlib.ExitStack() as stack:

        def with_spy(*args, **kwargs):
            spy = Spy(*args, **kwargs)
            stack.enter_context(watched_by(spy))
            return spy

        yield with_spy


SETTINGS = {"train": "train.tsv", "dropout": None}


def train(output, classifier=None, epochs=3, settings=SETTINGS, labels=LABELS):
    return fine_tune(
        classifier or new_classifier(),
        (token_ids(8), np.tile(labels, 2)),
        (token_ids(4), LABELS),
        output,
        epochs=epochs,
        batch_size=4,
        settings=settings,
    )


def same_weights(first, second):
    return all(map(np.array_equal, first, second))


# === The best epoch ===


def test_the_best_epoch_is_kept(tmp_path, watch):
    output = tmp_path / "deep" / "model"
    output.mkdir(parents=True)
    (output / "notes.txt").write_text("mine")
    accuracies = [0.25, 0.75, 0.25]
    spy = watch(accuracies)
    classifier = new_classifier()
    metrics = train(output, classifier)
    assert metrics["history"]["val_accuracy"] == accuracies
    assert metrics["best_epoch"] == 2
    assert metrics["dev"]["accuracy"] == 0.75
    assert metrics["dev"]["loss"] == metrics["history"]["val_loss"][1]
    assert same_weights(classifier.get_weights(), spy.weights[2])
    assert not any(same_weights(spy.weights[2], spy.weights[x]) for x in (1, 3))
    # Metrics of each epoch, that JSON can hold; and nothing else is left.
    names = {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert {x: len(y) for x, y in metrics["history"].items()} == dict.fromkeys(names, 3)
    assert json.loads(json.dumps(metrics)) == metrics and metrics["seconds"] > 0
    assert not (output / ".training").exists()
    assert (output / "notes.txt").read_text() == "mine"
    assert [path.name for path in output.parent.iterdir()] == ["model"]


def test_the_preset_is_the_model_that_was_scored(tmp_path):
    """Train on texts, like the command line."""
    output = str(tmp_path / "model")
    classifier = AlbertTextClassifier.from_backbone(
        new_backbone(), VOCABULARY, 2, labels=["差评", "好评"]
    )
    classifier.compile(learning_rate=1e-2)
    data = (TEXTS, LABELS.tolist())
    metrics = fine_tune(classifier, data, data, output, epochs=1)
    scores = classifier.evaluate(*data, return_dict=True, verbose=0)
    assert metrics["dev"] == pytest.approx(scores, rel=1e-5)
    loaded = AlbertTextClassifier.from_preset(output)
    assert loaded.labels == ["差评", "好评"]
    texts = [*TEXTS, "", "没见过的字"]
    first, second = (model.predict(texts, verbose=0) for model in (loaded, classifier))
    assert np.abs(first - second).max() < 1e-6


# === An interrupted run ===


@pytest.fixture(scope="module")
def cut_off_once(tmp_path_factory):
    output = tmp_path_factory.mktemp("cut_off") / "model"
    spy = Spy([0.25, 0.75, 0.25], cut_off_in=3)
    with watched_by(spy), pytest.raises(KeyboardInterrupt):
        train(output)
    return output


@pytest.fixture
def cut_off(cut_off_once, tmp_path):
    """The directory of a run that was stopped in the third of three epochs."""
    return shutil.copytree(cut_off_once, tmp_path / "model")


def test_it_resumes_where_it_was(cut_off, watch):
    assert [path.name for path in cut_off.iterdir()] == [".training"]
    there = json.loads((cut_off / ".training" / "epochs.json").read_text())["history"]
    assert there["val_accuracy"] == [0.25, 0.75]
    spy = watch([0.25, 0.75, 0.25])
    classifier = new_classifier()
    metrics = train(cut_off, classifier)
    assert spy.epochs == [3]
    # The optimizer too: two steps an epoch, and so the learning rate's schedule.
    assert spy.steps_before == [4]
    assert metrics["history"]["val_accuracy"] == [0.25, 0.75, 0.25]
    assert len(metrics["history"]["loss"]) == 3
    assert metrics["best_epoch"] == 2
    # From the second epoch, which this process has not trained.
    assert np.array_equal(classifier.output_dense.kernel, np.full((8, 2), 2e-3, "f"))
    assert not (cut_off / ".training").exists()
    assert (cut_off / "task.json").exists()


def test_another_training_is_refused(cut_off, watch):
    spy = watch()
    for changed, differs in (
        (
            {"settings": {**SETTINGS, "train": "b.tsv"}},
            "train: 'train.tsv', now 'b.tsv'",
        ),
        ({"epochs": 2}, "epochs: 3, now 2"),
        ({"labels": LABELS[::-1]}, "data: "),
    ):
        with pytest.raises(ValueError, match=f"another training.*{differs}.*remove"):
            train(cut_off, **changed)
    assert spy.epochs == []


def test_interrupted_while_weights_were_written(tmp_path, watch, monkeypatch):
    save_weights = keras.Model.save_weights

    def cut_short(self, filepath, **kwargs):
        save_weights(self, filepath, **kwargs)
        data = pathlib.Path(filepath).read_bytes()
        pathlib.Path(filepath).write_bytes(data[: len(data) // 2])
        raise KeyboardInterrupt

    watch([0.75, 0.25])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(keras.Model, "save_weights", cut_short)
        train(tmp_path / "model", epochs=2)
    metrics = train(tmp_path / "model", epochs=2)
    assert metrics["history"]["val_accuracy"] == [0.75, 0.25]
    assert metrics["best_epoch"] == 1


# === Freezing, averages, accumulation, patience ===


def closeness(model):
    """A score of `predict`, which rises with each step: three of four are 1."""
    return float(model.predict(token_ids(4), verbose=0)[:, 1].mean())


def train_with(output, compiled=None, epochs=4, **options):
    """Train with two steps per epoch; return the metrics and the model."""
    keras.utils.set_random_seed(0)
    classifier = AlbertTextClassifier(new_backbone(), 2, dropout=0.0)
    classifier.compile(learning_rate=1e-2, **(compiled or {}))
    metrics = fine_tune(
        classifier,
        (token_ids(8), np.tile(LABELS, 2)),
        (token_ids(4), LABELS),
        output,
        epochs=epochs,
        batch_size=4,
        scores=lambda model: {
            "closeness": closeness(model),
            # So that the last epoch can be chosen.
            "steps": int(model.optimizer.variables[0]),
        },
        **{"maximise": "closeness", **options},
    )
    return metrics, classifier


class Reshuffled(keras.callbacks.Callback):
    """Let the order of an epoch depend on its number, not on those run before."""

    def on_epoch_begin(self, epoch, logs=None):
        keras.utils.set_random_seed(epoch)


def test_resumed_it_ends_as_if_never_interrupted(tmp_path):
    compiled = {"ema_momentum": 0.8, "gradient_accumulation_steps": 3}
    options = {"epochs": 3, "freeze": "embeddings", "maximise": "steps"}
    with watched_by(Reshuffled()):
        whole, model = train_with(tmp_path / "whole", compiled, **options)
        with watched_by(Spy(cut_off_in=3)), pytest.raises(KeyboardInterrupt):
            train_with(tmp_path / "cut", compiled, **options)
        resumed, again = train_with(tmp_path / "cut", compiled, **options)
    assert resumed["best_epoch"] == whole["best_epoch"] == 3
    for score, values in whole["history"].items():
        assert resumed["history"][score] == pytest.approx(values, rel=1e-5), score
    for first, second in zip(model.weights, again.weights, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize(
    "freeze", ["embeddings", pytest.param("encoder", marks=pytest.mark.slow)]
)
def test_what_is_frozen_stays_and_trains_again_from_the_preset(tmp_path, freeze):
    before = {weight.path: np.array(weight) for weight in new_backbone().weights}
    _, model = train_with(tmp_path, freeze=freeze, epochs=1)
    moved = {
        weight.path
        for weight in model.backbone.weights
        if not np.array_equal(weight, before[weight.path])
    }
    assert not any(path.startswith("embedding") for path in moved)
    assert bool(moved) == (freeze == "embeddings")
    assert np.any(model.output_dense.bias)
    loaded = AlbertTextClassifier.from_preset(str(tmp_path))
    assert len(loaded.trainable_variables) == len(loaded.weights)


def test_nothing_left_to_train_is_refused(tmp_path):
    model = AlbertTextEmbedder(new_backbone())
    data = (token_ids(4), LABELS)
    with pytest.raises(ValueError, match="freeze=.encoder. .*nothing to train"):
        fine_tune(model, data, data, tmp_path, freeze="encoder")


def test_averages_are_what_is_scored_and_kept(tmp_path):
    """The average is that by hand, from the weights after each step."""
    seen = []

    class Weights(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(np.array(self.model.output_dense.kernel))

    with watched_by(Weights()):
        metrics, model = train_with(tmp_path, {"ema_momentum": 0.8}, epochs=2)
    average = seen[0]
    for weights in seen[1:]:
        average = 0.8 * average + 0.2 * weights
    assert (len(seen), metrics["best_epoch"]) == (4, 2)
    np.testing.assert_allclose(model.output_dense.kernel, average, atol=1e-6)
    assert np.abs(seen[-1] - average).max() > 1e-4
    scores = model.evaluate(token_ids(4), LABELS, verbose=0, return_dict=True)
    assert metrics["dev"]["loss"] == pytest.approx(scores["loss"], rel=1e-4)
    assert metrics["dev"]["closeness"] == pytest.approx(closeness(model), rel=1e-4)
    loaded = AlbertTextClassifier.from_preset(str(tmp_path))
    np.testing.assert_array_equal(loaded.output_dense.kernel, model.output_dense.kernel)


def test_patience_counts_the_epochs_before_a_restart(tmp_path, watch):
    spy = watch([0.25, 0.75, 0.25, 0.75, 0.25, 0.25], cut_off_in=3)
    options = {"epochs": 6, "patience": 2, "maximise": "accuracy"}
    with pytest.raises(KeyboardInterrupt):
        train_with(tmp_path, **options)
    spy.cut_off_in = None
    # Stopped early but not written, it is not trained again.
    with (
        mock.patch.object(AlbertTextClassifier, "save_to_preset", side_effect=OSError),
        pytest.raises(OSError),
    ):
        train_with(tmp_path, **options)
    metrics, _ = train_with(tmp_path, **options)
    assert spy.epochs == [1, 2, 3, 3, 4]
    assert metrics["history"]["val_accuracy"] == [0.25, 0.75, 0.25, 0.75]
    assert metrics["best_epoch"] == 2


KILLED = """
import os, signal, sys
import keras, test_fine_tuning as tests

class Killer(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

with tests.watched_by(Killer()):
    tests.train(sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_run_is_resumed(tmp_path, watch):
    output = tmp_path / "model"
    path = f"{pathlib.Path(__file__).parent}:{pathlib.Path(__file__).parents[2]}"
    command = [sys.executable, "-c", KILLED, str(output)]
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, capture_output=True, env=environment)
    assert result.returncode == -signal.SIGKILL, result.stderr.decode()
    assert not (output / "task.json").exists()
    spy = watch()
    metrics = train(output)
    assert spy.epochs == [2, 3]
    assert len(metrics["history"]["val_accuracy"]) == 3
    assert (output / "task.json").exists()


def test_a_model_that_could_not_be_written_is_not_trained_again(tmp_path, watch):
    def full_disk(self, directory):
        (pathlib.Path(directory) / "config.json").touch()
        raise OSError("No space left on device")

    with (
        mock.patch.object(AlbertTextClassifier, "save_to_preset", full_disk),
        pytest.raises(OSError, match="No space"),
    ):
        train(tmp_path / "model", epochs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert [path.name for path in (tmp_path / "model").iterdir()] == [".training"]
    spy = watch()
    train(tmp_path / "model", epochs=1)
    assert spy.epochs == []
    assert (tmp_path / "model" / "task.json").exists()
    assert not (tmp_path / "model" / ".training").exists()
