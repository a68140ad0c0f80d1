"""Fine-tuning a task: best epoch kept, history written, resumed if cut off."""

import pathlib
import shutil

import keras

from albert_tf.files import complete_directory
from albert_tf.training.plots import draw
from albert_tf.training.run_state import (
    BACKUP,
    TrainingState,
    data_digest,
    hold_state,
)


def fine_tune(
    model,
    train,
    dev,
    output,
    epochs=3,
    batch_size=32,
    settings=None,
    verbose=1,
    maximise="accuracy",
    tune=None,
    scores=None,
):
    """Fine-tune a task and write it as a preset.

    A run that was cut off is resumed, if it is started again with the same data and
    `settings`.

    Args:
        model: a compiled task. Afterwards it has the weights of the epoch with the
            best score on `dev`.
        train: `(x, y)` to train on.
        dev: `(x, y)` to choose the epoch on.
        output: string, the directory for the preset.
        epochs: int.
        batch_size: int.
        settings: optional dict, what identifies the run besides.
        verbose: int, as for `keras.Model.fit`.
        maximise: string, the score of the best epoch: a metric of the model, or one
            of `scores`.
        tune: optional function of the model, which sets what is chosen on `dev` and
            kept with it. Called before `scores`, and before the model is written.
        scores: optional function of the model, which gives a dict of floats, scores
            on `dev` that no metric computes.

    Returns:
        A dict: `history` (lists by metric), `best_epoch` (from 1), `dev`
        (metrics of that epoch) and `seconds` (of all starts).

    Raises:
        ValueError: if the directory holds the state of a training with other
            settings, or the training diverges.
        BlockingIOError: if another process trains into the directory.
    """
    output = pathlib.Path(output)
    backup = output / BACKUP
    identity = {
        **(settings or {}),
        "data": data_digest((train, dev)),
        "epochs": epochs,
        "batch_size": batch_size,
    }
    with hold_state(backup, identity):
        state = TrainingState(backup, monitor=f"val_{maximise}")
        model.fit(
            *train,
            validation_data=dev,
            epochs=epochs,
            initial_epoch=state.epochs,
            batch_size=batch_size,
            callbacks=[_DevScores(tune, scores), state],
            verbose=verbose,
        )
        best = state.best_epoch
        model.load_weights(state.weights(best))
        if tune:
            tune(model)
        metrics = {
            "best_epoch": best,
            "dev": {
                name.removeprefix("val_"): values[best - 1]
                for name, values in state.history.items()
                if name.startswith("val_")
            },
            "seconds": state.seconds,
            "history": state.history,
        }
        with complete_directory(output) as directory:
            model.save_to_preset(str(directory))
        shutil.rmtree(backup)
    return metrics


class _DevScores(keras.callbacks.Callback):
    """Adds scores to the metrics of each epoch, for the callbacks after it."""

    def __init__(self, tune, scores):
        super().__init__()
        self._tune, self._scores = tune, scores

    def on_epoch_end(self, epoch, logs=None):
        if self._tune:
            self._tune(self.model)
        if self._scores:
            scores = self._scores(self.model)
            logs.update({f"val_{name}": value for name, value in scores.items()})


def plot_history(history, path, score="accuracy"):
    """Draw loss and a score by epoch, of training and dev, as a PNG file."""
    draw(history, {"loss": "loss", score: score.replace("_", " ")}, path)
