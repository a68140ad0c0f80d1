"""Output and checks shared by all commands."""

import contextlib
import difflib
import json
import pathlib
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import typer
from rich.console import Console
from rich.progress import DownloadColumn, Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from albert_tf.files import (
    BACKUP,
    BUNDLED,
    bundled_heads,
    find_bundled,
    read_releases,
    split_head,
)
from albert_tf_lite.errors import AlbertError, MissingPackageError
from albert_tf_lite.pointers import check_downloaded

# Control characters but tab and line feed, those that reverse text, and the halves of
# surrogate pairs. A terminal would obey them, or they cannot be encoded.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str) -> str:
    """Return a text from a file for a terminal, with its control characters escaped."""
    return _CONTROL.sub(lambda x: f"\\u{ord(x[0]):04x}", text)


class _Console(Console):
    def render_str(self, text, **options):
        return super().render_str(escaped(text), **options)


# Output contains text from files and users, where "[b]" and ":x:" are not markup.
console = _Console(highlight=False, markup=False, emoji=False)
errors = _Console(stderr=True, highlight=False, markup=False, emoji=False)
EXPORTED = (".onnx", ".tflite")
# Seconds between two lines of progress in a log.
LINE_EVERY = 30.0


def import_tensorflow() -> None:
    """Import TensorFlow and all of `albert_tf`, with a status line on a terminal."""
    from albert_tf import quiet_import

    # Prints nothing unless standard output is a terminal.
    with console.status("Importing TensorFlow"):
        quiet_import.import_tensorflow()
        import albert_tf.tools  # noqa: F401


# === Checks before TensorFlow is imported ===


def state_folder(output: str | pathlib.Path) -> pathlib.Path:
    """Return the folder that keeps the state of an unfinished training."""
    return pathlib.Path(output) / BACKUP


def complete_checkpoint(incomplete: str) -> list[str]:
    """Return the names of checkpoints that begin so; a shell completes files."""
    heads = [f"{name}:{head}" for name in BUNDLED for head in bundled_heads(name)]
    names = (*BUNDLED, *read_releases(), *heads)
    return [x for x in names if x.startswith(incomplete)]


def check_checkpoint(name: str) -> None:
    """Raise if a name is not a finished checkpoint, an address or a release."""
    if not name:
        raise FileNotFoundError("The path of the model is empty.")
    name = str(split_head(name)[0])
    path = pathlib.Path(name)
    if path.is_file():
        check_downloaded(path)
    if state_folder(path).exists() and not (path / "config.json").exists():
        raise FileNotFoundError(
            f"The training in {name} is unfinished. Run the same command again to "
            "resume it."
        )
    is_file = path.exists() or pathlib.Path(f"{name}.index").is_file()
    if (
        is_file
        or name.startswith("hf://")
        or name in read_releases()
        or find_bundled(name)
    ):
        return
    similar = difflib.get_close_matches(name, [*read_releases(), *BUNDLED], 1)
    hint = f" Did you mean {similar[0]}?" if similar else ""
    raise FileNotFoundError(
        f"There is no checkpoint at {name}: it is not a directory, a file or the name "
        f"of a release.{hint} `albert-tf download` lists the releases."
    )


def open_network(
    path: str, task_name: str | None = None, precision: str | None = "float32"
) -> Any:
    """Open an exported file, or that beside a model, without importing TensorFlow.

    `precision` is as for `albert_tf_lite.pipeline`. Return `None` if there is none that
    answers as the model does. Raise if int8 was asked for.
    """
    from albert_tf_lite.network_files import NETWORK, int8_file, open_exported

    if pathlib.Path(path).suffix in EXPORTED:
        return open_exported(path)
    name, head = split_head(path)
    folder = find_bundled(name) or pathlib.Path(name)
    # The file of a named head has the name of the head.
    file = f"{head}.onnx" if head else NETWORK
    if precision == "int8":
        return open_exported(folder, file=file, precision=precision)
    files = [folder / file, *([] if precision else [int8_file(folder / file)])]
    if not any(x.is_file() for x in files):
        return None
    try:
        network = open_exported(folder, file=file, precision=precision)
    except MissingPackageError:
        return None
    except AlbertError as error:
        warnings.warn(f"{error} Until then, TensorFlow answers.", stacklevel=2)
        return None
    return network if task_name in (None, network.task) else None


def read_metrics(model: str) -> dict[str, Any]:
    """Return what `finetune` recorded beside a model, an empty dict without it."""
    file = pathlib.Path(model, "metrics.json")
    if not file.is_file():
        return {}
    check_downloaded(file)
    try:
        fields = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise AlbertError(
            f"{file} is not the record of a training. Remove it or copy it again."
        )
    return fields


def check_files(*names: str | None) -> None:
    """Raise if one of the names, `None` left out, is not a file."""
    for name in names:
        if name is not None and not pathlib.Path(name).is_file():
            raise FileNotFoundError(f"{name} is not a file.")
        if name is not None:
            check_downloaded(name)


def check_output(path: str, overwrite: bool) -> None:
    """Raise if a directory to write contains files, unless they may be replaced."""
    folder = pathlib.Path(path)
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise FileExistsError(
            f"{path} contains files. Choose another directory, or pass --overwrite to "
            "replace a checkpoint of the same layout."
        )


# === Training ===


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


# === Output ===


@contextlib.contextmanager
def progress_lines(command: str) -> Iterator[Callable[..., None]]:
    """Print a line to standard error every 30 s if the output is not a terminal.

    Yields a function `(done, total, unit="step")`. After its first call, the lines have
    the rate and the time left, otherwise the time since the start.
    """
    start, ended = time.monotonic(), threading.Event()
    calls: list[tuple] = []

    def update(done, total, unit="step"):
        # Keep the first call and the last.
        calls[1:] = [(time.monotonic(), done, total, unit)]

    def print_lines():
        while not ended.wait(LINE_EVERY):
            line = f"running for {_duration(time.monotonic() - start)}"
            if calls:
                (first, skipped, *_), (last, done, total, unit) = calls[0], calls[-1]
                line = f"{unit} {done:,.0f} of {total:,.0f}"
                if done > skipped:
                    rate = (done - skipped) / (last - first)
                    left = _duration((total - done) / rate)
                    per = f"{1 / rate:.3g} s per step"
                    per = per if unit == "step" else f"{rate:,.1f} {unit} per s"
                    line += f", {per}, {left} left"
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
    if not console.is_terminal:
        scale = 1e6 if unit == "MB" else 1
        yield lambda done, total: context.obj(
            done / scale, (total or done) / scale, unit
        )
        return
    column = DownloadColumn() if unit == "MB" else _TextsColumn()
    columns = (*Progress.get_default_columns(), column)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def format_value(value: Any) -> str:
    """Format a value of a report in a few words."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={format_value(item)}" for name, item in value.items())
    if isinstance(value, list):
        more = [f"and {len(value) - 5} more"] if len(value) > 5 else []
        return ", ".join([*map(str, value[:5]), *more]) or "none"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value or "none")


def print_line(line: str) -> None:
    """Print a line for other programs, or safely for a terminal."""
    print(escaped(line) if console.is_terminal else line)


def print_json(value: Any, indent: int | None = None) -> None:
    """Print JSON, with escapes if the encoding of the output lacks a character."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    print_line(text)


def print_summary(values: dict) -> None:
    """Print a dict as a table, one row per item."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(name, format_value(value))
    console.print(table)
