"""Progress of long commands, on a terminal or in a log."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import typer
from rich.progress import DownloadColumn, Progress, ProgressColumn
from rich.text import Text

from albert_tf_cli.shared.console import console, errors

# Seconds between two lines of progress in a log.
LINE_EVERY = 30.0


@contextlib.contextmanager
def interruptible(context: typer.Context) -> Iterator[dict[str, Any]]:
    """End a run that resumes at Ctrl-C or SIGTERM with a message and status 130.

    Yields the arguments of the training that print its progress: a bar on a terminal,
    otherwise a line per epoch and those of `progress_lines`.
    """
    try:
        verbose = 1 if console.is_terminal else 2
        yield {"verbose": verbose, "progress": context.obj}
    # The handler of SIGTERM in `main` raises SystemExit.
    except (KeyboardInterrupt, SystemExit) as error:
        message = str(error) if isinstance(error, KeyboardInterrupt) else ""
        console.print(message or "Interrupted. The same command resumes.")
        raise typer.Exit(130) from None


class _Progress(NamedTuple):
    """What a command had done at a time."""

    time: float
    done: float
    total: float
    unit: str

    def line_since(self, first: "_Progress") -> str:
        """Return the progress, with the rate since the first and the time left."""
        line = f"{self.unit} {self.done:,.0f} of {self.total:,.0f}"
        if self.done <= first.done:
            return line
        rate = (self.done - first.done) / (self.time - first.time)
        pace = f"{rate:,.1f} {self.unit} per s"
        if self.unit == "step":
            pace = f"{1 / rate:.3g} s per step"
        return f"{line}, {pace}, {_duration((self.total - self.done) / rate)} left"


@contextlib.contextmanager
def progress_lines(command: str) -> Iterator[Callable[..., None]]:
    """Print a line to standard error every 30 s if the output is not a terminal.

    Yields a function `(done, total, unit="step")`. After its first call, the lines have
    the rate and the time left, otherwise the time since the start.
    """
    start = time.monotonic()
    ended = threading.Event()
    first: _Progress | None = None
    last: _Progress | None = None

    def update(done: float, total: float, unit: str = "step") -> None:
        nonlocal first, last
        last = _Progress(time.monotonic(), done, total, unit)
        first = first or last

    def print_lines() -> None:
        while not ended.wait(LINE_EVERY):
            line = f"running for {_duration(time.monotonic() - start)}"
            if first is not None and last is not None:
                line = last.line_since(first)
            errors.print(f"{command}: {line}", soft_wrap=True)

    thread = threading.Thread(target=print_lines, daemon=True)
    if not console.is_terminal:
        thread.start()
    try:
        yield update
    finally:
        ended.set()


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


class _TextsColumn(ProgressColumn):
    def render(self, task):
        rate = f", {task.speed:,.0f} per s" if task.speed else ""
        return Text(f"{task.completed:,.0f} of {task.total or 0:,.0f}{rate}")


@contextlib.contextmanager
def progress_bar(
    title: str, context: typer.Context, unit: Literal["MB", "texts"] = "MB"
) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar; yield a function `(done, total)` of bytes or texts.

    If the output is not a terminal, the progress is that of `progress_lines`.
    """
    if console.is_terminal:
        column = DownloadColumn() if unit == "MB" else _TextsColumn()
        columns = (*Progress.get_default_columns(), column)
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(title, total=None)

            def update_bar(done: int, total: int | None) -> None:
                progress.update(task, completed=done, total=total)

            yield update_bar
    else:
        scale = 1e6 if unit == "MB" else 1

        def update_line(done: int, total: int | None) -> None:
            context.obj(done / scale, (total or done) / scale, unit)

        yield update_line
