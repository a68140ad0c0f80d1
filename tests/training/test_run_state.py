"""The state of a training: what may resume from it, its history, divergence."""

import json

import keras
import numpy as np
import pytest

from albert_tf.files import BACKUP
from albert_tf.training.run_state import TrainingState, hold_state

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


def test_two_trainings_at_a_time(backup):
    # Before the first epoch there is nothing to lose.
    with hold_state(backup, {"steps": 4}):
        with pytest.raises(BlockingIOError, match="Another process"):
            opened(backup, {"steps": 5})
        # A host that writes nothing is no other training.
        assert opened(backup, {"steps": 4}, writes=False)
    assert json.loads((backup / "identity.json").read_text()) == {"steps": 4}
    assert opened(backup, {"steps": 5})


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
