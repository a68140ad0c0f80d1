"""The state of a training: what may resume from it, its history, divergence."""

import json

import keras
import numpy as np
import pytest

from albert_tf.files import BACKUP
from albert_tf.training.run_state import (
    TrainingState,
    hold_state,
    plot_history,
)

X, Y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")


def small_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    return model


def train(backup, epochs=3, callbacks=(), x=X, **kwargs):
    model, state = small_model(), TrainingState(backup, monitor=None)
    model.fit(
        x,
        Y,
        batch_size=4,
        epochs=epochs,
        initial_epoch=state.epochs,
        callbacks=[*callbacks, state],
        verbose=0,
        **kwargs,
    )
    return state


@pytest.fixture
def backup(tmp_path):
    backup = tmp_path / "model" / BACKUP
    with hold_state(backup, {"steps": 3, "optimizer": {"rate": (1, 2)}}):
        return backup


# === Another training ===


def opened(backup, settings, **kwargs):
    with hold_state(backup, settings, **kwargs):
        return True


def test_another_training_is_refused_with_the_differences(backup):
    train(backup)
    assert opened(backup, {"optimizer": {"rate": [1, 2]}, "steps": 3})
    message = r"\(optimizer.clip: none, now None; steps: 3, now 4\).*or remove"
    with pytest.raises(ValueError, match=message):
        opened(backup, {"steps": 4, "optimizer": {"rate": [1, 2], "clip": None}})
    assert (backup / "epochs.json").exists()


def test_two_trainings_at_a_time(backup):
    # Before the first epoch there is nothing to lose.
    with hold_state(backup, {"steps": 4}):
        with pytest.raises(BlockingIOError, match="Another process"):
            opened(backup, {"steps": 5})
        # A host that writes nothing is no other training.
        assert opened(backup, {"steps": 4}, writes=False)
    assert json.loads((backup / "identity.json").read_text()) == {"steps": 4}
    assert opened(backup, {"steps": 5})


# === The history ===


def test_seconds_and_metrics_of_all_runs(backup):
    train(backup, 1)
    record = json.loads((backup / "epochs.json").read_text())
    (backup / "epochs.json").write_text(json.dumps({**record, "seconds": 1000.0}))
    train(backup, 2, validation_data=(X, Y))
    again = train(backup, 3)
    assert 1000 < again.seconds < 1100
    # Metrics of one run only are `None` in the others.
    missing = {name: [x is None for x in xs] for name, xs in again.history.items()}
    assert missing["mae"] == [False] * 3
    assert missing["val_loss"] == missing["val_mae"] == [True, False, True]


def test_metrics_of_one_run_are_plotted(tmp_path):
    history = {"loss": [3.0, 2.0], "val_loss": [None, 1.5], "accuracy": [0.1, 0.2]}
    plot_history(history, ["loss", "accuracy", "f1"], tmp_path / "a.png", interval=100)
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


# === Diverging ===


class Harm(keras.callbacks.Callback):
    """Put NaN into a weight after the last batch of the second epoch."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            self.model.layers[-1].kernel.assign(np.full((3, 1), np.nan))


def test_divergence_stops_at_once(backup):
    with pytest.raises(ValueError, match="diverged.*Nothing was saved yet"):
        train(backup, 1, x=np.full_like(X, np.nan))
    assert not (backup / "epochs.json").exists()


def test_the_last_finite_state_is_kept(backup):
    with pytest.raises(ValueError, match="diverged.*epoch 1 is kept.*learning rate"):
        train(backup, 3, [Harm()])
    again = train(backup, 2)
    assert np.isfinite(again.history["loss"]).all() and again.epochs == 2
    assert all(np.isfinite(x).all() for x in again.model.get_weights())
