"""Fine-tune a task, keep its best epoch, and resume after an interruption."""

import contextlib
import pathlib
import shutil

import keras

from albert_tf.files import BACKUP, complete_directory
from albert_tf.training.plots import draw
from albert_tf.training.run_state import (
    TrainingState,
    data_digest,
    hold_state,
)
from albert_tf_lite.errors import AlbertError

# The parts of a model that can be frozen, by name.
FREEZABLE = {
    "embeddings": lambda model: model.backbone.embedding,
    "encoder": lambda model: model.backbone,
}


def fine_tune(
    model,
    train,
    dev,
    output,
    epochs=3,
    batch_size=32,
    settings=None,
    verbose=1,
    callbacks=(),
    maximise="accuracy",
    tune=None,
    scores=None,
    freeze=None,
    patience=None,
):
    """Fine-tune a task and write it as a preset.

    To resume an interrupted run, start it again with the same data and `settings`.

    Args:
        model: a compiled task. Afterwards it has the weights of the epoch with the
            best score on `dev`. If its optimizer averages the weights (`use_ema`), the
            averages of each epoch are scored and kept.
        train: `(x, y)` to train on.
        dev: `(x, y)` to choose the epoch on.
        output: string, the directory for the preset.
        epochs: int.
        batch_size: int.
        settings: optional dict, further values that identify the run.
        verbose: int, as for `keras.Model.fit`.
        callbacks: further Keras callbacks.
        maximise: string, the score of the best epoch: a metric of the model, or one
            of `scores`.
        tune: optional function of the model that sets attributes chosen on `dev`, such
            as thresholds. Called before `scores` and before the model is written.
        scores: optional function of the model that returns a dict of floats, scores on
            `dev` that no metric computes.
        freeze: optional string, the part that does not train: `"embeddings"`, or
            `"encoder"` for the whole backbone. The written preset is not frozen.
        patience: optional int. Stop after this number of epochs in a row without
            improvement on `dev`.

    Returns:
        A dict: `history` (lists by metric), `best_epoch` (from 1), `dev`
        (metrics of that epoch) and `seconds` (of all runs).

    Raises:
        AlbertError: if the directory holds the state of a training with other
            settings, the training diverges, or `freeze` leaves nothing to train.
        BlockingIOError: if another process trains into the directory.
    """
    output = pathlib.Path(output)
    backup = output / BACKUP
    identity = {
        **(settings or {}),
        "data": data_digest((train, dev)),
        "epochs": epochs,
        "batch_size": batch_size,
        "freeze": freeze,
        "patience": patience,
    }
    with hold_state(backup, identity):
        state = TrainingState(backup, monitor=f"val_{maximise}", patience=patience)
        callbacks = [_DevScores(tune, scores), state, *callbacks]
        if model.optimizer.use_ema:
            callbacks.insert(0, _AveragedWeights(resumed=bool(state.epochs)))
        with _frozen(model, freeze):
            model.fit(
                *train,
                validation_data=dev,
                epochs=state.epochs if state.has_stopped else epochs,
                initial_epoch=state.epochs,
                batch_size=batch_size,
                callbacks=callbacks,
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


@contextlib.contextmanager
def _frozen(model, freeze):
    """Freeze a part of a model, but not in a preset that is written afterwards."""
    if freeze is None:
        yield
        return
    part = FREEZABLE[freeze](model)
    part.trainable = False
    try:
        if not model.trainable_variables:
            raise AlbertError(
                f"With freeze={freeze!r} {type(model).__name__} has nothing to train, "
                "because it has no head. Choose another part or none."
            )
        yield
    finally:
        part.trainable = True


class _AveragedWeights(keras.callbacks.SwapEMAWeights):
    """Put the averages into the model while it is scored and saved.

    Args:
        resumed: bool. Whether the model begins with the saved weights of an epoch.
    """

    def __init__(self, resumed):
        super().__init__(swap_on_epoch=True)
        self._ema_weights_in_model = resumed


class _DevScores(keras.callbacks.Callback):
    """Add scores to the metrics of each epoch, for the callbacks after it."""

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
    """Plot loss and a score of training and dev by epoch, as a PNG file."""
    draw(history, {"loss": "loss", score: score.replace("_", " ")}, path)
