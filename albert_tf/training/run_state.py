"""The state of a training in its output directory, from which it resumes.

`run_identity` describes where the states of all kinds of runs are.
"""

import contextlib
import json
import math
import operator
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from albert_tf.files import check_space, complete_file, read_json, write_text
from albert_tf.locks import only_writer, remove_unneeded
from albert_tf.training.interruption import Interruption
from albert_tf.training.run_identity import refuse_another_run
from albert_tf.writing_errors import name_final_path
from albert_tf_lite.errors import AlbertError, first_line

IDENTITY, HISTORY = "identity.json", "epochs.json"
# Maximum number of seconds between two saved states.
SAVE_EVERY = 180

Logs = dict[str, float]


@contextlib.contextmanager
def hold_state(
    backup: pathlib.Path, identity: dict[str, Any], writes: bool = True
) -> Iterator[None]:
    """Lock the directory of a training's state.

    Raises if it holds the state of a training with another `identity`. `writes` is
    false for all but one of the hosts that share the directory.
    """
    with contextlib.ExitStack() as stack:
        with name_final_path(backup):
            backup.mkdir(parents=True, exist_ok=True)
            if writes:
                stack.enter_context(only_writer(backup))
        text = json.dumps(identity)
        file = backup / IDENTITY
        # A training without a saved state may be replaced.
        if file.exists() and (backup / HISTORY).exists():
            refuse_another_run(
                read_json(file, dict),
                # JSON turns tuples into lists.
                json.loads(text),
                f"{backup} holds the state of another training",
                f"Choose another output directory, or remove {backup} to start over.",
            )
        elif writes:
            write_text(file, text)
        yield


class TrainingState(keras.callbacks.Callback):
    """Save the metrics and the weights of the last epoch, to resume from.

    Unlike with Keras' `BackupAndRestore`, a process killed while saving leaves a
    complete state, and a training that diverges is stopped.

    The state is also saved every few minutes, and at Ctrl-C and SIGTERM, which end the
    training after the current step; a second Ctrl-C ends it at once.

    Args:
        directory: the folder of the state, see `hold_state`.
        interval: int. Number of steps per epoch, by default that of `fit`.
        scale: int. The number that a step counts for `progress` and in messages.
        progress: optional function, called after each step with the numbers of
            completed steps and of all steps.
        writes: bool. Save the state, which one of several hosts does.

    Attributes:
        history: dict of lists by metric, one value per completed epoch.
        start: dict, the scores before training; empty if there are none.
        step: int, the completed steps of an interrupted epoch.
        interval: int, the steps per epoch.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        interval: int = 0,
        scale: int = 1,
        progress: Callable[[int, int], Any] | None = None,
        writes: bool = True,
    ):
        super().__init__()
        self._directory, self._file = directory, directory / HISTORY
        self.interval, self._scale = interval, scale
        self._progress, self._writes = progress, writes
        saved = read_json(self._file, dict) if self._file.exists() else {}
        with self._naming_damage():
            self.history: dict[str, list] = {
                name: [None if x is None else float(x) for x in values]
                for name, values in saved.get("history", {}).items()
            }
            self.start: Logs = {x: float(y) for x, y in saved.get("start", {}).items()}
            self.step = operator.index(saved.get("step", 0))
            self._seeds = list(saved.get("seeds", []))
            self._metrics = list(saved.get("metrics", []))
            self._start_time = time.perf_counter() - float(saved.get("seconds", 0.0))
        self._saved_at = time.monotonic()
        self._interruption = Interruption()

    @contextlib.contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """Name the directory in errors about a saved state that cannot be used."""
        try:
            yield
        except AlbertError:
            raise
        # Keras and HDF5 raise errors of many classes for damaged files.
        except Exception as error:
            raise AlbertError(
                f"The state of a training in {self._directory} is damaged or of "
                f"another model: {first_line(error)}. Remove the directory to start "
                "over."
            ) from error

    # === What is complete ===

    @property
    def epochs(self) -> int:
        """Number of completed epochs."""
        return max(map(len, self.history.values()), default=0)

    @property
    def steps(self) -> int:
        """Number of completed steps."""
        return self.epochs * self.interval + self.step

    @property
    def seconds(self) -> float:
        """Duration of the training over all runs."""
        return round(time.perf_counter() - self._start_time, 1)

    @property
    def has_stopped(self) -> bool:
        """True if no further epoch is to be trained."""
        return False

    def weights(self, epoch: int, step: int = 0) -> pathlib.Path:
        """Return the file of the weights after a number of epochs and steps."""
        return self._directory / f"epoch-{epoch}-step-{step}.weights.h5"

    def kept_weights(self) -> set[pathlib.Path]:
        """Return the files of weights that a saved state needs."""
        return {self.weights(self.epochs, self.step)}

    # === Training ===

    def fit(
        self,
        model: keras.Model,
        epochs: int,
        data: Callable[[], dict[str, Any]],
        **options: Any,
    ) -> None:
        """Train a model until `epochs` are completed.

        `data` returns arguments of `keras.Model.fit` for the batches after the
        completed steps; `options` are the others.
        """
        # First the rest of an interrupted epoch, then complete ones.
        while True:
            is_rest = self.step > 0
            arguments = data()
            with self._interruption.awaited():
                model.fit(
                    epochs=self.epochs if self.has_stopped else epochs,
                    initial_epoch=self.epochs,
                    **arguments,
                    **options,
                )
            if not is_rest or self.epochs >= epochs:
                return

    def load(self, model: keras.Model) -> None:
        """Load the saved weights and optimizer state, if any, into a model."""
        if self.epochs or self.step:
            # Without its variables the optimizer's state would not be loaded.
            model.optimizer.build(model.trainable_variables)
            self.load_weights(model, self.epochs, self.step)
            with self._naming_damage():
                for seed, value in zip(_random_seeds(model), self._seeds, strict=False):
                    seed.assign(value)

    def load_weights(self, model: keras.Model, epoch: int, step: int = 0) -> None:
        """Load the weights after a number of epochs and steps."""
        with self._naming_damage():
            model.load_weights(self.weights(epoch, step))

    def set_start(self, score: Callable[[], Logs]) -> None:
        """Score the model before its first step; keep the scores of a resumed run."""
        if not (self.epochs or self.step):
            self.start = {name: float(value) for name, value in score().items()}

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.interval = self.step + self.params["steps"]
        self.load(self.model)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        # Before an hour of training is lost.
        self.check_space()

    def on_train_batch_end(self, batch: int, logs: Logs) -> None:
        self.refuse_divergence([float(logs["loss"])])
        self._restore_metrics()
        self.step += 1
        if self._progress:
            self._progress(self.steps * self._scale, self._all_steps() * self._scale)
        if self.step == self.interval:
            # `on_epoch_end` saves.
            return
        is_due = time.monotonic() - self._saved_at > SAVE_EVERY
        # On JAX the model has its weights at the end of an epoch only.
        has_weights = keras.backend.backend() == "tensorflow"
        if has_weights and (is_due or self._interruption.is_requested):
            self.refuse_divergence(self.model.get_weights())
            self.write()
        self._end_if_interrupted()

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        # The loss does not yet show the effect of the last update.
        self.refuse_divergence([logs["loss"], *self.model.get_weights()])
        for name in {**self.history, **logs}:
            values = self.history.setdefault(name, [None] * epoch)
            values.append(float(logs[name]) if name in logs else None)
        self.step = 0
        self.write()
        if self.has_stopped or self.params["steps"] < self.interval:
            self.model.stop_training = True
        self._end_if_interrupted()

    def _all_steps(self) -> int:
        return self.interval * self.params["epochs"]

    def _restore_metrics(self) -> None:
        """Add the sums of the batches before an interruption to those of the first."""
        if not self._metrics:
            return
        # Keras has reset the variables at the begin of the epoch.
        variables = self.model.metrics_variables
        with self._naming_damage():
            for variable, value in zip(variables, self._metrics, strict=True):
                variable.assign_add(value)
        self._metrics = []

    def _end_if_interrupted(self) -> None:
        steps = self._all_steps()
        if self._interruption.is_requested and self.steps < steps:
            raise KeyboardInterrupt(
                f"Interrupted at step {self.steps * self._scale:,} of "
                f"{steps * self._scale:,}. The same command resumes."
            )

    # === Saving ===

    def write(self) -> None:
        """Save the state."""
        self._saved_at = time.monotonic()
        self._seeds = _values(_random_seeds(self.model))
        if not self._writes:
            return
        self.check_space()
        self.write_weights(self.weights(self.epochs, self.step))
        # The new state is valid from here on.
        state = {
            "history": self.history,
            "start": self.start,
            "seconds": self.seconds,
            "step": self.step,
            "seeds": self._seeds,
            "metrics": _values(self.model.metrics_variables) if self.step else [],
        }
        write_text(self._file, json.dumps(state))
        files = set(self._directory.glob("epoch-*.weights.h5"))
        for file in files - self.kept_weights():
            remove_unneeded(file)

    def write_weights(self, path: pathlib.Path) -> None:
        """Write the weights and the optimizer's state to a file."""
        # JAX would share the variables that Keras makes here with other hosts.
        distribution = keras.distribution.distribution()
        keras.distribution.set_distribution(None)
        try:
            with complete_file(path) as temporary:
                self.model.save_weights(temporary)
        finally:
            keras.distribution.set_distribution(distribution)

    def check_space(self) -> None:
        """Raise if the disk has no room for the weights."""
        variables = (*self.model.variables, *self.model.optimizer.variables)
        if self._writes:
            check_space(self._directory, variables)

    def refuse_divergence(self, values: Iterable[Any]) -> None:
        """Raise if a number in one of several arrays is not finite."""
        if all(np.isfinite(value).all() for value in values):
            return
        kept = "Nothing was saved yet."
        if self.epochs:
            kept = f"The state of epoch {self.epochs} is kept in {self._directory}."
        raise AlbertError(
            "The training has diverged: the loss or a weight is not finite. "
            f"{kept} Start over with a lower learning rate or a longer warm-up."
        )


def rank(scores: Logs, monitor: str) -> tuple[float, float, float]:
    """Return what is larger for better scores on dev.

    The names, also that of `monitor`, may begin with `val_`, as in the logs of Keras.
    """
    prefix = "val_" if monitor.startswith("val_") else ""
    score = scores[monitor]
    # Accuracies on a few examples are often equal. Of those, a model that predicts one
    # class for all texts has the lowest macro F1.
    return score, scores.get(f"{prefix}macro_f1", score), -scores[f"{prefix}loss"]


class BestEpochState(TrainingState):
    """Keep the weights of the best epoch, too, and stop when there is no better one.

    Unlike with Keras' `EarlyStopping`, `patience` counts the epochs before a restart.

    The best epoch has the largest `monitor`. With `start`, the first weights compete as
    epoch 0, which is the best if no score is better. Of other equal scores, the one
    with the larger macro F1 on dev is better, if there is one, then the one with the
    lower loss.

    Args:
        directory: the folder of the state, see `hold_state`.
        progress: optional function, called after each step with the numbers of
            completed steps and of all steps.
        monitor: string, a metric.
        patience: optional int. Epochs without a better one, after which the training
            stops.
        start: optional function that returns the scores before training.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        monitor: str,
        patience: int | None = None,
        progress: Callable[[int, int], Any] | None = None,
        start: Callable[[], Logs] | None = None,
    ):
        super().__init__(directory, progress=progress)
        self.monitor, self.patience = monitor, patience
        self._score_start = start
        if self.epochs:
            with self._naming_damage():
                # Raises if a saved score is missing.
                _ = self.best_epoch

    @property
    def best_epoch(self) -> int:
        """Best epoch so far, counted from 1; 0 is before training."""
        scores = self.history.get(self.monitor, [])
        if self.start and self.start[self.monitor] >= max(scores, default=-math.inf):
            return 0
        names = {self.monitor, "val_macro_f1", "val_loss"} & set(self.history)
        ranks = [
            rank({name: self.history[name][epoch] for name in names}, self.monitor)
            for epoch in range(len(scores))
        ]
        return ranks.index(max(ranks)) + 1

    @property
    def has_stopped(self) -> bool:
        """True if the last `patience` epochs brought no improvement."""
        if self.patience is None or not self.epochs:
            return False
        return self.epochs - self.best_epoch >= self.patience

    def kept_weights(self) -> set[pathlib.Path]:
        files = super().kept_weights()
        if self.epochs or self.start:
            files.add(self.weights(self.best_epoch))
        return files

    def on_train_begin(self, logs: Logs | None = None) -> None:
        super().on_train_begin(logs)
        if self._score_start and not (self.epochs or self.step):
            self.set_start(self._score_start)
            self.check_space()
            self.write_weights(self.weights(0))


def _random_seeds(model: keras.Model) -> list[keras.Variable]:
    """Return the seeds of dropout, which files of weights do not contain."""
    weights = {id(weight) for weight in model.weights}
    return [x for x in model.variables if id(x) not in weights]


def _values(variables: Iterable[keras.Variable]) -> list[Any]:
    return [keras.ops.convert_to_numpy(x).tolist() for x in variables]
