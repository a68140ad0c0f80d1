"""Fine-tuning a classifier: best epoch kept, history written, resumed if cut off."""

import pathlib
import shutil

from albert_tf.files import complete_directory
from albert_tf.training.plots import draw
from albert_tf.training.run_state import (
    BACKUP,
    TrainingState,
    data_digest,
    hold_state,
)


def fine_tune(
    classifier, train, dev, output, epochs=3, batch_size=32, settings=None, verbose=1
):
    """Fine-tune a classifier and write it as a preset.

    A run that was cut off is resumed, if it is started again with the same data and
    `settings`.

    Args:
        classifier: a compiled `AlbertTextClassifier`. Afterwards it has the
            weights of the epoch with the best accuracy on `dev`.
        train: `(x, y)` to train on.
        dev: `(x, y)` to choose the epoch on.
        output: string, the directory for the preset.
        epochs: int.
        batch_size: int.
        settings: optional dict, what identifies the run besides.
        verbose: int, as for `keras.Model.fit`.

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
        state = TrainingState(backup)
        classifier.fit(
            *train,
            validation_data=dev,
            epochs=epochs,
            initial_epoch=state.epochs,
            batch_size=batch_size,
            callbacks=[state],
            verbose=verbose,
        )
        best = state.best_epoch
        classifier.load_weights(state.weights(best))
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
            classifier.save_to_preset(str(directory))
        shutil.rmtree(backup)
    return metrics


def plot_history(history, path):
    """Draw loss and accuracy by epoch, of training and dev, as a PNG file."""
    draw(history, {"loss": "loss", "accuracy": "accuracy"}, path)
