"""Progress of a training on a terminal or in a log."""

import signal
import time

import keras
import typer
from rich.progress import BarColumn, Progress, TextColumn

from albert_tf_cli.common import console

# Seconds until a log has a first estimate of the remaining time.
FIRST_ESTIMATE = 60
# Readable names of the metrics of pretraining; `None` hides one.
NAMES = {
    "mlm_logits_accuracy": "masked tokens",
    "sop_logits_accuracy": "order",
    "mlm_logits_loss": None,
    "sop_logits_loss": None,
}


class TrainingProgress(keras.callbacks.Callback):
    """Show a progress bar, and print one line per interval.

    Use it as a context manager: it removes the bar before an error is printed, and
    after Ctrl-C or SIGTERM it prints the step from which the training will resume.

    Args:
        steps: optional int, steps of the whole training. Defaults to those of all
            epochs.
        interval: optional int, steps of a complete epoch. Defaults to those of the
            first epoch.
    """

    def __init__(self, steps=None, interval=None):
        super().__init__()
        self._steps, self._interval = steps, interval
        self._done = self._epoch_begun = 0
        self._told = False
        bar = BarColumn(None)
        self._bar = Progress(bar, TextColumn("{task.description}"), console=console)
        self._task = None

    def __enter__(self):
        self._handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def __exit__(self, kind, error, traceback):
        signal.signal(signal.SIGTERM, self._handler)
        if self._task is not None:
            self._bar.stop()
        if isinstance(error, KeyboardInterrupt):
            told = str(error)
            if not told and self._steps:
                told = (
                    f"Interrupted at {self._position()}. The same command resumes "
                    f"from step {self._epoch_begun:,}."
                )
            console.print(told or "Interrupted.")
            raise typer.Exit(130) from None

    def on_epoch_begin(self, epoch, logs=None):
        steps = self.params["steps"]
        self._interval = self._interval or steps
        self._steps = self._steps or steps * self.params["epochs"]
        # Keras counts only the remaining steps of a resumed interval.
        self._done = (epoch + 1) * self._interval - steps
        self._epoch_begun = self._done
        self._begun_at, self._begun = time.monotonic(), self._done
        if console.is_terminal and self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._steps)

    def on_train_batch_end(self, batch, logs=None):
        self._done += 1
        if self._task is not None:
            loss = f"loss {float(logs['loss']):.4g}"
            text = f"{self._position()}, {loss}{self._estimate()}"
            self._bar.update(self._task, completed=self._done, description=text)
        elif not self._told and time.monotonic() - self._begun_at > FIRST_ESTIMATE:
            self._told = True
            console.print(f"{self._position()}{self._estimate()}")

    def on_epoch_end(self, epoch, logs=None):
        self._epoch_begun = self._done
        loss = {name: logs[name] for name in ("loss",) if name in logs}
        scores = [
            f"{name} {float(value):.4f}"
            for key, value in {**loss, **logs}.items()
            if (name := _name(key)) is not None
        ]
        told = f"{self._position()}: {', '.join(scores)}{self._estimate()}"
        self._bar.console.print(told, soft_wrap=True)

    def _position(self):
        return f"step {self._done:,} of {self._steps:,}"

    def _estimate(self):
        """Format the time per step and the remaining time; empty at the end."""
        # The first step includes tracing.
        steps = self._done - self._begun - 1
        if steps < 1:
            self._begun_at = time.monotonic()
            return ""
        each = (time.monotonic() - self._begun_at) / steps
        left = self._steps - self._done
        return f", {each:.3g} s per step, {_duration(left * each)} left" if left else ""


def _name(metric):
    """Return the name to print for a metric, `None` if it is hidden."""
    plain = metric.removeprefix("val_")
    name = NAMES.get(plain, plain)
    return name if name is None or plain == metric else f"dev {name}"


def _duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 2:
        return f"{60 * minutes + seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
