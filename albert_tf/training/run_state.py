"""Save the state of a training in its output directory, resume from it, and plot it."""

import contextlib
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from albert_tf.files import check_space, complete_file, only_writer, write_text
from albert_tf_lite.errors import AlbertError

IDENTITY, HISTORY = "identity.json", "epochs.json"
# Maximum number of seconds between two saved states.
SAVE_EVERY = 180


@contextlib.contextmanager
def hold_state(
    backup: pathlib.Path, identity: dict[str, Any], writes: bool = True
) -> Iterator[None]:
    """Lock the directory of a training's state.

    Raises if it holds the state of a training with another `identity`. `writes` is
    false for all but one of the hosts that share the directory.
    """
    backup.mkdir(parents=True, exist_ok=True)
    with only_writer(backup) if writes else contextlib.nullcontext():
        # JSON turns tuples into lists.
        text, file = json.dumps(identity), backup / IDENTITY
        # A training without a saved state may be replaced.
        if file.exists() and (backup / HISTORY).exists():
            old = json.loads(file.read_text("utf-8"))
            if differ := differences(old, json.loads(text)):
                raise AlbertError(
                    f"{backup} holds the state of another training ({differ}). Choose "
                    f"another output directory, or remove {backup} to start over."
                )
        elif writes:
            write_text(file, text)
        yield


def data_digest(data: Any) -> str:
    """Return the fingerprint of nested lists and arrays of texts and numbers."""
    digest = hashlib.sha256()
    for leaf in map(np.ascontiguousarray, keras.tree.flatten(data)):
        # The content of an array of objects is their addresses.
        leaf = leaf.astype(str) if leaf.dtype == object else leaf
        # Types and shapes distinguish ["ab", "c"] from ["a", "bc"].
        digest.update(f"{leaf.dtype.str}{leaf.shape}".encode() + leaf.tobytes())
    return digest.hexdigest()


def model_digest(model: Any) -> str:
    """Return the fingerprint of config, vocabulary and weights of a task."""
    config = json.dumps(without_names(model.get_config()), sort_keys=True, default=str)
    preprocessor = model.preprocessor
    vocabulary = preprocessor and repr(preprocessor.tokenizer.fingerprint)
    return data_digest((config, str(vocabulary), model.get_weights()))


def without_names(config: Any) -> Any:
    """Return a config without the names, which count the objects of the process."""
    if not isinstance(config, dict):
        return config
    return {x: without_names(y) for x, y in config.items() if x != "name"}


def differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the first differences of nested dicts by dotted names, for a message."""
    first, second = (
        {".".join(map(str, path)): repr(leaf) for path, leaf in leaves}
        for leaves in map(keras.tree.flatten_with_path, (old, new))
    )

    def shown(name):
        values = [leaves.get(name, "none") for leaves in (first, second)]
        if all(re.fullmatch("'[0-9a-f]{64}'", value) for value in values):
            return f"other {name}"
        # At most 40 characters of a value.
        return "{}: {:.40}, now {:.40}".format(name, *values)

    names = sorted(first.keys() | second.keys())
    named = [shown(name) for name in names if first.get(name) != second.get(name)]
    return "; ".join(named[:4])


class TrainingState(keras.callbacks.Callback):
    """Save the metrics of each epoch and the weights of the best, to resume from.

    Unlike with Keras' `BackupAndRestore` and `EarlyStopping`, a process killed while
    saving leaves a complete state, a training that diverges is stopped, and `patience`
    counts the epochs before a restart. The best epoch has the largest `monitor`; with
    `None` only the last one is kept. `start` returns the scores before training, by
    which the first weights compete as epoch 0. It is the best if no score is better.
    Of other equal scores, the one with the lower loss on dev is better.

    The state is also saved every few minutes, and at Ctrl-C and SIGTERM, which end the
    training after the current step; a second Ctrl-C ends it at once. `step` counts the
    steps of an interrupted epoch.
    `interval` is the number of steps per epoch, by default that of `fit`. After each
    step, `progress` is called with the numbers of completed steps and of all steps. For
    both and in messages, one counts as `scale` steps.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        monitor: str | None = None,
        writes: bool = True,
        patience: int | None = None,
        interval: int = 0,
        progress: Callable[[int, int], Any] | None = None,
        scale: int = 1,
        start: Callable[[], dict[str, float]] | None = None,
    ):
        super().__init__()
        self._scale = scale
        self._score_start = start
        self.monitor: Any = monitor
        self.patience = patience
        self._directory = directory
        self._writes = writes
        self._interval = interval
        self._progress = progress
        self._file = directory / HISTORY
        exists = self._file.exists()
        saved = json.loads(self._file.read_text("utf-8")) if exists else {}
        self.history: dict[str, list] = saved.get("history", {})
        # The scores of epoch 0, empty if it does not compete.
        self.start: dict[str, float] = saved.get("start", {})
        self.step: int = saved.get("step", 0)
        self._seeds, self._metrics = saved.get("seeds", []), saved.get("metrics", [])
        self._start = time.perf_counter() - saved.get("seconds", 0.0)
        self._saved_at = time.monotonic()
        self._is_interrupted = False

    @property
    def epochs(self) -> int:
        """Number of completed epochs."""
        return max(map(len, self.history.values()), default=0)

    @property
    def steps(self) -> int:
        """Number of completed steps."""
        return self.epochs * self._interval + self.step

    @property
    def seconds(self) -> float:
        """Duration of the training over all runs."""
        return round(time.perf_counter() - self._start, 1)

    @property
    def best_epoch(self) -> int:
        """Best epoch so far, counted from 1; 0 is before training."""
        scores = self.history.get(self.monitor, [])
        if self.start and self.start[self.monitor] >= max(scores, default=-math.inf):
            return 0
        # Accuracies on a few examples are often equal.
        losses = [-loss for loss in self.history["val_loss"]]
        ranks = list(zip(scores, losses, strict=True))
        return ranks.index(max(ranks)) + 1

    @property
    def has_stopped(self) -> bool:
        """True if the last `patience` epochs brought no improvement."""
        if self.patience is None or not self.epochs:
            return False
        return self.epochs - self.best_epoch >= self.patience

    def weights(self, epoch: int, step: int = 0) -> pathlib.Path:
        """Return the file of the weights, kept for the best and the last epoch."""
        return self._directory / f"epoch-{epoch}-step-{step}.weights.h5"

    def load(self, model: keras.Model) -> None:
        """Load the saved weights and optimizer state, if any, into a model."""
        if self.epochs or self.step:
            # Without its variables the optimizer's state would not be loaded.
            model.optimizer.build(model.trainable_variables)
            model.load_weights(self.weights(self.epochs, self.step))
            for seed, value in zip(_random_seeds(model), self._seeds, strict=False):
                seed.assign(value)

    def on_train_begin(self, logs: Any = None) -> None:
        self._interval = self.step + self.params["steps"]
        self.load(self.model)
        if self._score_start and not (self.epochs or self.step):
            scores = self._score_start()
            self.start = {name: float(value) for name, value in scores.items()}
            self._check_space()
            self._write_weights(self.weights(0))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        # Before an hour of training is lost.
        self._check_space()

    def _check_space(self) -> None:
        variables = (*self.model.variables, *self.model.optimizer.variables)
        if self._writes:
            check_space(self._directory, variables)

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
            is_rest, arguments = self.step > 0, data()
            with self._handling_signals():
                model.fit(
                    epochs=self.epochs if self.has_stopped else epochs,
                    initial_epoch=self.epochs,
                    **arguments,
                    **options,
                )
            if not is_rest or self.epochs >= epochs:
                return

    @contextlib.contextmanager
    def _handling_signals(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM end the training after its step."""
        before = {}
        # Python allows handlers in the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                # Neither one that is not of Python and could not be restored, nor a
                # signal that the program ignores, as after `nohup` and `&`.
                if handler not in (None, signal.SIG_IGN):
                    before[number] = signal.signal(number, self._interrupt)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._is_interrupted:
            raise KeyboardInterrupt
        self._is_interrupted = True

    def _end_if_interrupted(self) -> None:
        steps = self._interval * self.params["epochs"]
        if self._is_interrupted and self.steps < steps:
            raise KeyboardInterrupt(
                f"Interrupted at step {self.steps * self._scale:,} of "
                f"{steps * self._scale:,}. The same command resumes."
            )

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.refuse_divergence([float(logs["loss"])])
        if self._metrics:
            # The variables are sums over batches, which Keras has reset.
            variables = self.model.metrics_variables
            for variable, value in zip(variables, self._metrics, strict=True):
                variable.assign_add(value)
            self._metrics = []
        self.step += 1
        if self._progress:
            steps = self._interval * self.params["epochs"]
            self._progress(self.steps * self._scale, steps * self._scale)
        if self.step == self._interval:
            # `on_epoch_end` saves.
            return
        # On JAX the model has its weights at the end of an epoch only.
        is_due = time.monotonic() - self._saved_at > SAVE_EVERY
        if keras.backend.backend() == "tensorflow" and (is_due or self._is_interrupted):
            self.refuse_divergence(self.model.get_weights())
            self.write()
        self._end_if_interrupted()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        # The loss does not yet show the effect of the last update.
        self.refuse_divergence([logs["loss"], *self.model.get_weights()])
        for name in {**self.history, **logs}:
            values = self.history.setdefault(name, [None] * epoch)
            values.append(float(logs[name]) if name in logs else None)
        self.step = 0
        self.write()
        if self.has_stopped or self.params["steps"] < self._interval:
            self.model.stop_training = True
        self._end_if_interrupted()

    def write(self) -> None:
        """Save the state."""
        self._saved_at = time.monotonic()
        self._seeds = _values(_random_seeds(self.model))
        if not self._writes:
            return
        self._check_space()
        last = self.weights(self.epochs, self.step)
        self._write_weights(last)
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
        kept = {last}
        if self.monitor is not None and (self.epochs or self.start):
            kept.add(self.weights(self.best_epoch))
        for file in set(self._directory.glob("epoch-*.weights.h5")) - kept:
            file.unlink()

    def _write_weights(self, path: pathlib.Path) -> None:
        temporary = self._directory / "part.weights.h5"
        # JAX would share the variables that Keras makes here with other hosts.
        distribution = keras.distribution.distribution()
        keras.distribution.set_distribution(None)
        try:
            self.model.save_weights(temporary)
        finally:
            keras.distribution.set_distribution(distribution)
        temporary.replace(path)

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


def _random_seeds(model: keras.Model) -> list[keras.Variable]:
    """Return the seeds of dropout, which files of weights do not contain."""
    weights = {id(weight) for weight in model.weights}
    return [x for x in model.variables if id(x) not in weights]


def _values(variables: Iterable[keras.Variable]) -> list[Any]:
    return [keras.ops.convert_to_numpy(x).tolist() for x in variables]


def plot_history(
    history: dict[str, list],
    metrics: Iterable[str],
    path: str | os.PathLike,
    interval: int = 1,
    xlabel: str = "epoch",
    start: dict[str, float] | None = None,
) -> None:
    """Plot metrics of training and dev as a PNG file, with a panel per metric.

    `start` has the scores on dev before training, which are drawn at 0.
    """
    # pyplot would change the caller's backend.
    from matplotlib.figure import Figure

    metrics = [x for x in metrics if x in history or f"val_{x}" in history]
    figure = Figure(figsize=(4.5 * len(metrics), 3.5), layout="constrained")
    axes = figure.subplots(1, len(metrics), squeeze=False)
    for axis, metric in zip(axes[0], metrics, strict=True):
        for name, label in ((metric, "training"), (f"val_{metric}", "dev")):
            if name not in history:
                continue
            values = np.array(history[name], float)
            x = interval * np.arange(1, len(values) + 1)
            if label == "dev" and start:
                x, values = np.append(0, x), np.append(start[metric], values)
            # Markers show a single point.
            axis.plot(x, values, marker="o", markersize=4, label=label)
        axis.set(xlabel=xlabel, title=metric.replace("_", " "))
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        axis.legend()
    with complete_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
