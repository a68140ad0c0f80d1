"""The state of a training in its output directory, from which it is resumed."""

import contextlib
import hashlib
import json
import time

import keras
import numpy as np

from albert_tf.files import make_folder, only_writer, write_text
from albert_tf_lite.errors import AlbertError

IDENTITY, HISTORY = "identity.json", "epochs.json"
# Differences that a message names, and characters of a value in it.
MOST_NAMED, MOST_SHOWN = 4, 40


@contextlib.contextmanager
def hold_state(backup, identity, writes=True):
    """Hold the directory of a training's state, so that no other writes to it.

    Refuses one with epochs of another training, by the identity, a dict of what JSON
    can hold. Of several hosts that share the directory one `writes`.
    """
    make_folder(backup)
    with only_writer(backup) if writes else contextlib.nullcontext():
        # As it will be read: without tuples.
        identity = json.loads(json.dumps(identity))
        file = backup / IDENTITY
        # Of a training without an epoch there is nothing to lose.
        if file.exists() and (backup / HISTORY).exists():
            if differ := differences(json.loads(file.read_text("utf-8")), identity):
                raise AlbertError(
                    f"{backup} holds the state of another training ({differ}). Give "
                    f"another output directory, or remove {backup} to start over."
                )
        elif writes:
            write_text(file, json.dumps(identity))
        yield


def weights_digest(model):
    """The fingerprint of all weights of a model, a string."""
    return data_digest(model.get_weights())


def data_digest(data):
    """The fingerprint of nested lists and arrays of texts and numbers, a string."""
    digest = hashlib.sha256()
    for leaf in map(np.ascontiguousarray, keras.tree.flatten(data)):
        # Strings as objects have their addresses for content.
        leaf = leaf.astype(str) if leaf.dtype == object else leaf
        # With types and shapes: "ab", "c" are not "a", "bc".
        digest.update(f"{leaf.dtype.str}{leaf.shape}".encode() + leaf.tobytes())
    return digest.hexdigest()


def differences(there, now):
    """What nested dicts do not have alike, by dotted names, a string for a message."""
    named = list(_differences(there, now))
    more = len(named) - MOST_NAMED
    return "; ".join(named[:MOST_NAMED] + [f"{more} more differences"] * (more > 0))


def _differences(there, now, name=""):
    if isinstance(there, dict) and isinstance(now, dict):
        for key in sorted({*there, *now}):
            pair = (x.get(key, _ABSENT) for x in (there, now))
            yield from _differences(*pair, f"{name}.{key}" if name else key)
    elif there != now:
        yield f"{name}: {_shown(there)}, now {_shown(now)}"


_ABSENT = object()


def _shown(value):
    text = "none" if value is _ABSENT else repr(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


@contextlib.contextmanager
def _alone():
    """Save on one host. Keras makes variables on the way, which JAX shares with all."""
    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(distribution)


class TrainingState(keras.callbacks.Callback):
    """Keeps every epoch's metrics and the weights of the best, across restarts.

    Keras' `BackupAndRestore` leaves half a file, or weights and epoch that do not
    belong together, if its process is killed while it writes. A training
    that diverges is stopped, and the last epoch before that is kept.

    The largest value of `monitor` is best; without one the weights of the last epoch
    are kept only. With `patience` the training ends after so many epochs in a row that
    are no better, as by Keras' `EarlyStopping`, which knows none before a restart. Of
    several hosts that share the directory one `writes`. `history` has an entry an epoch
    by metric, `None` where an epoch was without. `step` is how many steps of the next
    epoch are done, 0 unless a subclass saves within epochs.
    """

    def __init__(self, directory, monitor="val_accuracy", writes=True, patience=None):
        super().__init__()
        self.monitor = monitor
        self.patience = patience
        self._directory = directory
        self._writes = writes
        self._file = directory / HISTORY
        there = self._file.exists()
        self.saved = json.loads(self._file.read_text("utf-8")) if there else {}
        self.history = self.saved.get("history", {})
        self.step = self.saved.get("step", 0)
        self._seconds_before = self.saved.get("seconds", 0.0)
        self._start = None

    @property
    def epochs(self):
        """How many epochs are done."""
        return max(map(len, self.history.values()), default=0)

    @property
    def seconds(self):
        """How long the training took, over all starts, a float."""
        now = 0.0 if self._start is None else time.perf_counter() - self._start
        return round(self._seconds_before + now, 1)

    def weights(self, epoch, step=0):
        """The file of the weights after an epoch, kept of the best and the last."""
        name = f"epoch-{epoch}-step-{step}" if step else f"epoch-{epoch}"
        return self._directory / f"{name}.weights.h5"

    @property
    def best_epoch(self):
        """The best epoch so far, counted from 1."""
        values = self.history[self.monitor]
        return values.index(max(values)) + 1

    @property
    def has_stopped(self):
        """Whether the last `patience` epochs were no better than one before."""
        if self.patience is None or not self.epochs:
            return False
        return self.epochs - self.best_epoch >= self.patience

    def on_train_begin(self, logs=None):
        # A second `fit` goes on with the weights there are.
        if self._start is None:
            self._start = time.perf_counter()
            self.load(self.model)

    def load(self, model):
        """Give a model the weights, and the optimizer's state, that were saved."""
        if self.epochs or self.step:
            # Else the optimizer's state would not be loaded.
            model.optimizer.build(model.trainable_variables)
            model.load_weights(self.weights(self.epochs, self.step))

    def on_train_batch_end(self, batch, logs=None):
        self.refuse_divergence([float(logs["loss"])])

    def on_epoch_end(self, epoch, logs=None):
        # The last update's harm is in the weights, not yet in the loss.
        self.refuse_divergence([logs["loss"], *self.model.get_weights()])
        for name in {**self.history, **logs}:
            values = self.history.setdefault(name, [None] * epoch)
            values.append(float(logs[name]) if name in logs else None)
        self.step = 0
        self.write()
        if self.has_stopped:
            self.model.stop_training = True

    def write(self, **more):
        """Save the state as it is, with what a subclass needs `more`."""
        if not self._writes:
            return
        temporary = self._directory / "part.weights.h5"
        with _alone():
            self.model.save_weights(temporary)
        last = self.weights(self.epochs, self.step)
        temporary.replace(last)
        # From here on it counts: what is cut off before is run again.
        state = {"history": self.history, "seconds": self.seconds, "step": self.step}
        write_text(self._file, json.dumps({**state, **more}))
        kept = {last}
        if self.monitor is not None:
            kept.add(self.weights(self.best_epoch))
        for file in set(self._directory.glob("epoch-*.weights.h5")) - kept:
            file.unlink()

    def refuse_divergence(self, values):
        """Raise if one of some arrays has a number that is not finite."""
        if all(np.isfinite(value).all() for value in values):
            return
        kept = "Nothing was saved yet."
        if self.epochs:
            kept = f"The state of epoch {self.epochs} is kept in {self._directory}."
        raise AlbertError(
            "The training has diverged: the loss or a weight is no finite number. "
            f"{kept} Start over with a lower learning rate or a longer warm-up."
        )
