"""Fine-tuning a task: best epoch kept, history written, resumed if cut off."""

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

# What of a model can be kept from training, by name.
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

    A run that was cut off is resumed, if it is started again with the same data and
    `settings`.

    Args:
        model: a compiled task. Afterwards it has the weights of the epoch with the
            best score on `dev`. If its optimizer keeps averages of them (`use_ema`),
            these are what is scored and kept of each epoch.
        train: `(x, y)` to train on.
        dev: `(x, y)` to choose the epoch on.
        output: string, the directory for the preset.
        epochs: int.
        batch_size: int.
        settings: optional dict, what identifies the run besides.
        verbose: int, as for `keras.Model.fit`.
        callbacks: further Keras callbacks.
        maximise: string, the score of the best epoch: a metric of the model, or one
            of `scores`.
        tune: optional function of the model, which sets what is chosen on `dev` and
            kept with it. Called before `scores`, and before the model is written.
        scores: optional function of the model, which gives a dict of floats, scores
            on `dev` that no metric computes.
        freeze: optional string, what does not train: `"embeddings"`, or `"encoder"`,
            the whole backbone, for a head on fixed features. What is written trains
            as ever.
        patience: optional int. Stop after so many epochs in a row that are no better
            on `dev` than the best before them.

    Returns:
        A dict: `history` (lists by metric), `best_epoch` (from 1), `dev`
        (metrics of that epoch) and `seconds` (of all starts).

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
    """Keep a part of a model from training, which a preset would keep frozen, too."""
    if freeze is None:
        yield
        return
    part = FREEZABLE[freeze](model)
    part.trainable = False
    try:
        if not model.trainable_variables:
            raise AlbertError(
                f"Without the {freeze} {type(model).__name__} has nothing to train: it "
                "has no head of its own."
            )
        yield
    finally:
        part.trainable = True


class _AveragedWeights(keras.callbacks.SwapEMAWeights):
    """The averages are in the model while it is scored and kept, not while it trains.

    Args:
        resumed: bool. Whether the model begins with what was kept of an epoch.
    """

    def __init__(self, resumed):
        super().__init__(swap_on_epoch=True)
        self._ema_weights_in_model = resumed


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
