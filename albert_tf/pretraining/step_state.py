"""The state of a pretraining, saved within its intervals, too."""

import contextlib
import signal
import threading
import time

import keras

from albert_tf.training.run_state import TrainingState

# Between two saved states at most, in seconds.
SAVE_EVERY = 180


class Interrupted(KeyboardInterrupt):
    """A training was told to end, and its state is saved."""


class StepState(TrainingState):
    """Saves every few minutes, and when the process is told to end.

    Ctrl-C and SIGTERM let the step end, save, and raise `Interrupted`; a second Ctrl-C
    ends at once. What is saved within an interval is resumed with its metrics, so that
    the history is that of a training that was not cut off.

    Args:
        directory: path of the state.
        interval: int, steps of an epoch of `fit`.
        steps: int, of the whole training.
        writes: bool, see `TrainingState`.
        save_every: float, seconds.
    """

    def __init__(self, directory, interval, steps, writes=True, save_every=SAVE_EVERY):
        super().__init__(directory, monitor=None, writes=writes)
        self._interval, self._steps = interval, steps
        self._save_every = save_every
        self._sums = self.saved.get("metrics") if self.step else None
        self._told_to_end = False

    @property
    def steps(self):
        """How many steps are done."""
        return self.epochs * self._interval + self.step

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self._saved_at = time.monotonic()

    @contextlib.contextmanager
    def handling_signals(self):
        """Within it Ctrl-C and SIGTERM end the training after its step."""
        handlers = {}
        # Python lets only the main thread have handlers.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers[number] = signal.signal(number, self._end_soon)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _end_soon(self, number, frame):
        if self._told_to_end:
            raise KeyboardInterrupt
        self._told_to_end = True

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._sums is not None:
            # They are sums over batches; Keras has begun them anew.
            for variable, value in zip(self._metrics(), self._sums, strict=True):
                variable.assign_add(value)
            self._sums = None
        self.step += 1
        if self.step == self._interval:
            # The epoch ends, which saves.
            return
        # JAX has the weights elsewhere until an epoch ends.
        if keras.backend.backend() == "tensorflow" and self._is_due():
            self.refuse_divergence(self.model.get_weights())
            self.write(metrics=[float(value) for value in self._metrics()])
            self._saved_at = time.monotonic()
        self._end_if_told()

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self._saved_at = time.monotonic()
        if self.steps < self._steps:
            self._end_if_told()

    def _is_due(self):
        return self._told_to_end or time.monotonic() - self._saved_at > self._save_every

    def _end_if_told(self):
        if self._told_to_end:
            raise Interrupted(
                f"Interrupted at step {self.steps:,} of {self._steps:,}. The same "
                "command resumes."
            )

    def _metrics(self):
        return [value for metric in self.model.metrics for value in metric.variables]
