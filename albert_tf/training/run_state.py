"""Save the state of a training in its output directory and resume from it."""

import contextlib
import hashlib
import json
import pathlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np

from albert_tf.files import make_folder, only_writer, write_text
from albert_tf_lite.errors import AlbertError

IDENTITY, HISTORY = "identity.json", "epochs.json"
# Maximum numbers of differences in a message and of characters per value.
MAX_NAMED, MAX_SHOWN = 4, 40


@contextlib.contextmanager
def hold_state(
    backup: pathlib.Path, identity: dict[str, Any], writes: bool = True
) -> Iterator[None]:
    """Lock the directory of a training's state.

    Args:
        backup: path of the directory.
        identity: dict that JSON can hold, different for each training.
        writes: bool. `False` for all but one of the hosts that share the directory.

    Raises:
        AlbertError: if the directory holds epochs of another training.
        BlockingIOError: if another process holds it.
    """
    make_folder(backup)
    with only_writer(backup) if writes else contextlib.nullcontext():
        # As it will be read: JSON turns tuples into lists.
        identity = json.loads(json.dumps(identity))
        file = backup / IDENTITY
        # A training without a complete epoch may be replaced.
        if file.exists() and (backup / HISTORY).exists():
            if differ := differences(json.loads(file.read_text("utf-8")), identity):
                raise AlbertError(
                    f"{backup} holds the state of another training ({differ}). Choose "
                    f"another output directory, or remove {backup} to start over."
                )
        elif writes:
            write_text(file, json.dumps(identity))
        yield


def weights_digest(model: keras.Model) -> str:
    """Return the fingerprint of all weights of a model."""
    return data_digest(model.get_weights())


def data_digest(data: Any) -> str:
    """Return the fingerprint of nested lists and arrays of texts and numbers."""
    digest = hashlib.sha256()
    for leaf in map(np.ascontiguousarray, keras.tree.flatten(data)):
        # The content of an array of objects is their addresses.
        leaf = leaf.astype(str) if leaf.dtype == object else leaf
        # Types and shapes distinguish ["ab", "c"] from ["a", "bc"].
        digest.update(f"{leaf.dtype.str}{leaf.shape}".encode() + leaf.tobytes())
    return digest.hexdigest()


def differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the differences of nested dicts by dotted names, for a message."""
    named = list(_differences(old, new))
    more = len(named) - MAX_NAMED
    return "; ".join(named[:MAX_NAMED] + [f"{more} more differences"] * (more > 0))


def _differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            below = f"{name}.{key}" if name else key
            values = old.get(key, _ABSENT), new.get(key, _ABSENT)
            yield from _differences(*values, below)
    elif old != new:
        yield f"{name}: {_shown(old)}, now {_shown(new)}"


_ABSENT = object()


def _shown(value: Any) -> str:
    text = "none" if value is _ABSENT else repr(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


@contextlib.contextmanager
def _without_distribution() -> Iterator[None]:
    """Save on one host: JAX would share the variables that Keras makes meanwhile."""
    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(distribution)


class TrainingState(keras.callbacks.Callback):
    """Save the metrics of each epoch and the weights of the best, to resume from.

    Unlike Keras' `BackupAndRestore`, a process killed while saving leaves neither half
    a file nor weights of another epoch. A training that diverges is stopped, and the
    epoch before is kept. A second `fit` continues from the saved weights.

    Args:
        directory: path of the state.
        monitor: optional string, the metric whose largest value is best. `None` keeps
            the weights of the last epoch only.
        writes: bool. `False` for all but one of the hosts that share the directory.
        patience: optional int. Stop after this number of epochs in a row without
            improvement. Keras' `EarlyStopping` forgets the epochs before a restart.

    Attributes:
        history: dict of lists by metric, with `None` for an epoch without the metric.
        step: int, completed steps of the next epoch; 0 unless a subclass saves within
            epochs.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        monitor: str | None = "val_accuracy",
        writes: bool = True,
        patience: int | None = None,
    ):
        super().__init__()
        self.monitor: Any = monitor
        self.patience = patience
        self._directory = directory
        self._writes = writes
        self._file = directory / HISTORY
        exists = self._file.exists()
        self.saved = json.loads(self._file.read_text("utf-8")) if exists else {}
        self.history: dict[str, list] = self.saved.get("history", {})
        self.step: int = self.saved.get("step", 0)
        self._start = time.perf_counter() - self.saved.get("seconds", 0.0)

    @property
    def epochs(self) -> int:
        """Number of completed epochs."""
        return max(map(len, self.history.values()), default=0)

    @property
    def seconds(self) -> float:
        """Duration of the training over all runs."""
        return round(time.perf_counter() - self._start, 1)

    @property
    def best_epoch(self) -> int:
        """Best epoch so far, counted from 1."""
        values = self.history[self.monitor]
        return values.index(max(values)) + 1

    @property
    def has_stopped(self) -> bool:
        """True if the last `patience` epochs brought no improvement."""
        if self.patience is None or not self.epochs:
            return False
        return self.epochs - self.best_epoch >= self.patience

    def weights(self, epoch: int, step: int = 0) -> pathlib.Path:
        """Return the file of the weights, kept for the best and the last epoch."""
        name = f"epoch-{epoch}-step-{step}" if step else f"epoch-{epoch}"
        return self._directory / f"{name}.weights.h5"

    def load(self, model: keras.Model) -> None:
        """Load the saved weights and optimizer state, if any, into a model."""
        if self.epochs or self.step:
            # Without its variables the optimizer's state would not be loaded.
            model.optimizer.build(model.trainable_variables)
            model.load_weights(self.weights(self.epochs, self.step))

    def on_train_begin(self, logs: Any = None) -> None:
        self.load(self.model)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.refuse_divergence([float(logs["loss"])])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        # The loss does not yet show the effect of the last update.
        self.refuse_divergence([logs["loss"], *self.model.get_weights()])
        for name in {**self.history, **logs}:
            values = self.history.setdefault(name, [None] * epoch)
            values.append(float(logs[name]) if name in logs else None)
        self.step = 0
        self.write()
        if self.has_stopped:
            self.model.stop_training = True

    def write(self, **more: Any) -> None:
        """Save the state, and `more` values of a subclass."""
        if not self._writes:
            return
        temporary = self._directory / "part.weights.h5"
        with _without_distribution():
            self.model.save_weights(temporary)
        last = self.weights(self.epochs, self.step)
        temporary.replace(last)
        # The new state is valid from here on.
        state = {"history": self.history, "seconds": self.seconds, "step": self.step}
        write_text(self._file, json.dumps({**state, **more}))
        kept = {last}
        if self.monitor is not None:
            kept.add(self.weights(self.best_epoch))
        for file in set(self._directory.glob("epoch-*.weights.h5")) - kept:
            file.unlink()

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
