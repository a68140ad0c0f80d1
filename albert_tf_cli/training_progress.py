"""Progress of a training on a terminal or in a log."""

import signal
import time

import keras
import typer
from rich.progress import BarColumn, Progress, TextColumn

from albert_tf_cli.common import console

# Printed names of the metrics of pretraining; `None` hides one.
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
        steps: optional int, steps of the whole training. Defaults to all epochs.
        interval: optional int, steps of a complete epoch. Defaults to the first one.
    """

    def __init__(self, steps=None, interval=None):
        super().__init__()
        self._steps, self._interval = steps, interval
        self._done = self._epoch_begun = 0
        text = TextColumn("{task.description}")
        self._bar = Progress(BarColumn(None), text, console=console)
        self._task = self._bar.add_task("", total=steps, visible=False)

    def __enter__(self):
        self._handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def __exit__(self, kind, error, traceback):
        signal.signal(signal.SIGTERM, self._handler)
        self._bar.stop()
        if isinstance(error, KeyboardInterrupt):
            message = str(error)
            if not message and self._steps:
                message = (
                    f"Interrupted at {self._position()}. The same command resumes "
                    f"from step {self._epoch_begun:,}."
                )
            console.print(message or "Interrupted.")
            raise typer.Exit(130) from None

    def on_epoch_begin(self, epoch, logs=None):
        steps = self.params["steps"]
        self._interval = self._interval or steps
        self._steps = self._steps or steps * self.params["epochs"]
        # Keras counts only the remaining steps of a resumed interval.
        self._done = self._epoch_begun = (epoch + 1) * self._interval - steps
        self._start = time.monotonic(), self._done
        if console.is_terminal:
            self._bar.start()
            self._bar.update(self._task, total=self._steps, visible=True)

    def on_train_batch_end(self, batch, logs=None):
        self._done += 1
        if self._done == self._epoch_begun + 1:
            # The first step includes tracing.
            self._start = time.monotonic(), self._done
        if console.is_terminal:
            loss = f"loss {float(logs['loss']):.4g}"
            text = f"{self._position()}, {loss}{self._estimate()}"
            self._bar.update(self._task, completed=self._done, description=text)

    def on_epoch_end(self, epoch, logs=None):
        self._epoch_begun = self._done
        scores = [
            f"{name} {float(value):.4f}"
            for key, value in {"loss": 0, **logs}.items()
            if (name := _name(key)) is not None
        ]
        line = f"{self._position()}: {', '.join(scores)}{self._estimate()}"
        self._bar.console.print(line, soft_wrap=True)

    def _position(self):
        return f"step {self._done:,} of {self._steps:,}"

    def _estimate(self):
        """Format the time per step and the remaining time; empty at the end."""
        begun_at, begun = self._start
        left = self._steps - self._done
        if not left or self._done == begun:
            return ""
        each = (time.monotonic() - begun_at) / (self._done - begun)
        minutes, seconds = divmod(round(left * each), 60)
        hours, minutes = divmod(minutes, 60)
        remaining = f"{hours}:{minutes:02}:{seconds:02}"
        return f", {each:.3g} s per step, {remaining} left"


def _name(metric):
    """Return the name to print for a metric, `None` if it is hidden."""
    plain = metric.removeprefix("val_")
    name = NAMES.get(plain, plain)
    return name if name is None or plain == metric else f"dev {name}"
