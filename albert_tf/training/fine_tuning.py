"""Fine-tuning a classifier: best epoch kept, record written, resumed if cut off."""

import json
import pathlib
import shutil
import time

import keras

from albert_tf.files import complete_directory, write_text

BACKUP = ".training"


class TrainingRecord(keras.callbacks.Callback):
    """Keeps every epoch's metrics and the weights of the best, across restarts.

    As Keras' `BackupAndRestore`, of which a process that is killed while it writes
    leaves half a file or weights and epoch that do not belong together.

    Args:
        directory: path to keep them in.
        monitor: string, the metric of which the largest value is best. `None` to keep
            the weights of the last epoch only.
    """

    def __init__(self, directory, monitor="val_accuracy"):
        super().__init__()
        self.monitor = monitor
        self._directory = directory
        self._file = directory / "record.json"
        self.history = json.loads(self._file.read_text()) if self._file.exists() else {}

    @property
    def epochs(self):
        """How many epochs are done."""
        return max(map(len, self.history.values()), default=0)

    def weights(self, epoch):
        """The file of the weights after an epoch, kept of the best and the last."""
        return self._directory / f"epoch-{epoch}.weights.h5"

    @property
    def best_epoch(self):
        """The best epoch so far, counted from 1."""
        values = self.history[self.monitor]
        return values.index(max(values)) + 1

    def on_train_begin(self, logs=None):
        if self.epochs:
            # Else the optimizer's state would not be loaded.
            self.model.optimizer.build(self.model.trainable_variables)
            self.model.load_weights(self.weights(self.epochs))

    def on_epoch_end(self, epoch, logs=None):
        for name, value in logs.items():
            self.history.setdefault(name, []).append(float(value))
        temporary = self._directory / "part.weights.h5"
        self.model.save_weights(temporary)
        temporary.replace(self.weights(epoch + 1))
        # From here on the epoch counts: what is cut off before is run again.
        write_text(self._file, json.dumps(self.history))
        for file in self._directory.glob("epoch-*.weights.h5"):
            if file not in self._kept(epoch + 1):
                file.unlink()

    def _kept(self, last):
        best = [] if self.monitor is None else [self.weights(self.best_epoch)]
        return [self.weights(last), *best]


def fine_tune(
    classifier, train, dev, output, epochs=3, batch_size=32, settings=None, verbose=1
):
    """Fine-tune a classifier and write it as a preset.

    A run that was cut off goes on where it was, if it is started again with the
    same `settings`.

    Args:
        classifier: a compiled `AlbertTextClassifier`. Afterwards it has the
            weights of the epoch with the best accuracy on `dev`.
        train: `(x, y)` to train on.
        dev: `(x, y)` to choose the epoch on.
        output: string, the directory for the preset.
        epochs: int.
        batch_size: int.
        settings: optional dict, what identifies the run.
        verbose: int, as for `keras.Model.fit`.

    Returns:
        A dict: `history` (lists by metric), `best_epoch` (from 1), `dev`
        (metrics of that epoch) and `seconds` (of this start).
    """
    output = pathlib.Path(output)
    backup = output / BACKUP
    settings = {**(settings or {}), "epochs": epochs, "batch_size": batch_size}
    start_anew_unless_same(backup, settings)
    record = TrainingRecord(backup)
    start = time.perf_counter()
    classifier.fit(
        *train,
        validation_data=dev,
        epochs=epochs,
        initial_epoch=record.epochs,
        batch_size=batch_size,
        callbacks=[record],
        verbose=verbose,
    )
    best = record.best_epoch
    classifier.load_weights(record.weights(best))
    metrics = {
        "best_epoch": best,
        "dev": {
            name.removeprefix("val_"): values[best - 1]
            for name, values in record.history.items()
            if name.startswith("val_")
        },
        "seconds": round(time.perf_counter() - start, 1),
        "history": record.history,
    }
    with complete_directory(output) as directory:
        classifier.save_to_preset(str(directory))
    shutil.rmtree(backup)
    return metrics


def start_anew_unless_same(backup, settings):
    file = backup / "settings.json"
    if file.exists() and json.loads(file.read_text()) == settings:
        return
    shutil.rmtree(backup, ignore_errors=True)
    backup.mkdir(parents=True)
    write_text(file, json.dumps(settings))


def plot_history(history, path):
    """Draw loss and accuracy by epoch, of training and dev.

    Args:
        history: dict of lists by metric, as Keras' `History.history`.
        path: string, the PNG file to write.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for axis, metric in zip(axes, ("loss", "accuracy"), strict=True):
        for name, label in ((metric, "training"), (f"val_{metric}", "dev")):
            values = history[name]
            axis.plot(range(1, len(values) + 1), values, marker="o", label=label)
        axis.set(xlabel="epoch", title=metric)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        axis.legend()
    temporary = pathlib.Path(path).with_name(f".{pathlib.Path(path).name}.part")
    figure.savefig(temporary, dpi=120, format="png")
    temporary.replace(path)
    plt.close(figure)
