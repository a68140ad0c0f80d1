"""Options, output and checks shared by all commands."""

import contextlib
import difflib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import typer
import typer.core
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from albert_tf_lite.errors import AlbertError, MissingPackageError

# Groups of options, in the order in which the help of a command lists them.
GROUPS = ("Arguments", "Data", "Model", "Training", "Output", "Options", "Advanced")
_, DATA, MODEL, TRAINING, OUTPUT, _, ADVANCED = GROUPS


class Command(typer.core.TyperCommand):
    """A command whose help lists its options in groups."""

    def format_options(self, ctx, formatter):
        groups = {group: [] for group in GROUPS}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                is_argument = parameter.param_type_name == "argument"
                group = getattr(parameter, "rich_help_panel", None)
                group = group or ("Arguments" if is_argument else "Options")
                groups[group].append(record)
        for group, records in groups.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)


app = typer.Typer(
    help="ALBERT for Keras 3 on TensorFlow, with first-class Chinese support.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # The boxes of rich truncate option names at 80 columns.
    rich_markup_mode=None,
)
# Output contains text from files and users, where "[b]" and ":x:" are not markup.
console = Console(highlight=False, markup=False, emoji=False)
errors = Console(stderr=True, highlight=False, markup=False, emoji=False)


def _print_version(is_requested: bool):
    if is_requested:
        print(f"albert-tf {importlib.metadata.version('albert-tf')}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
):
    pass


Checkpoint = Annotated[
    str,
    typer.Argument(
        help="Checkpoint of TensorFlow 1, Hugging Face, KerasHub or this package: its "
        "directory, an archive, its prefix (.../albert_model.ckpt), any of its files, "
        "or the name of a release such as albert_tiny_zh."
    ),
]
Config = Annotated[
    str | None,
    typer.Option(help="Config file of the checkpoint, if it is not beside it."),
]
Vocab = Annotated[
    str | None,
    typer.Option(
        help="vocab.txt or SentencePiece model, if it is not beside the checkpoint."
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA, help="Name or number (from 1) of the label column."
    ),
]
TextAColumn = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA, help="Name or number (from 1) of the text column."
    ),
]
TextBColumn = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA,
        help="Name or number of the column with the second text of a pair.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


Layout = Literal["keras", "google", "albert_zh", "huggingface", "kerashub"]
Precision = Literal["float32", "bfloat16", "auto"]


def import_tensorflow():
    """Import TensorFlow and all of `albert_tf`, with a status line on a terminal."""
    from albert_tf import quiet_import

    status = contextlib.nullcontext()
    if console.is_terminal:
        status = console.status("Importing TensorFlow")
    try:
        with status:
            quiet_import.import_tensorflow()
            import albert_tf.models  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "torch", "openvino"):
            raise
        raise MissingPackageError(
            f"Keras is set to the backend {error.name}, which is not installed. "
            f'Install it, or set KERAS_BACKEND=tensorflow (or "backend" in '
            "~/.keras/keras.json)."
        ) from error


def state_folder(output: str | pathlib.Path) -> pathlib.Path:
    """Return the folder that keeps the state of an unfinished training."""
    from albert_tf.files import BACKUP

    return pathlib.Path(output) / BACKUP


def releases() -> dict[str, dict]:
    """Read the table of releases without importing TensorFlow."""
    (folder,) = importlib.util.find_spec("albert_tf").submodule_search_locations
    file = pathlib.Path(folder, "checkpoints", "releases.json")
    return json.loads(file.read_text("utf-8"))["releases"]


def check_checkpoint(name: str):
    """Raise if a name is not a file, an address or a release."""
    path = pathlib.Path(name)
    # A prefix, or a name of one of its files.
    prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path.name)
    is_prefix = (path.parent / f"{prefix}.index").is_file()
    known = releases()
    if path.exists() or is_prefix or name.startswith("hf://") or name in known:
        return
    similar = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {similar[0]}?" if similar else ""
    raise FileNotFoundError(
        f"There is no checkpoint at {name}: it is not a directory, a file or the name "
        f"of a release.{hint} `albert-tf download` lists the releases."
    )


def check_files(*names: str | None):
    """Raise if one of the names, `None` left out, is not a file."""
    for name in names:
        if name is not None and not pathlib.Path(name).is_file():
            raise FileNotFoundError(f"{name} is not a file.")


def random_backbone(config: str, vocabulary_size: int | None = None):
    """Build a backbone of a named size or of a config file, with random weights."""
    import zh
    from albert_tf.backbone import SIZES, AlbertBackbone
    from albert_tf.checkpoints import config_arguments

    sizes = {**SIZES, **zh.SIZES}
    if config in sizes:
        rows = {"vocabulary_size": vocabulary_size} if vocabulary_size else {}
        return AlbertBackbone(**{**sizes[config], **rows})
    if not pathlib.Path(config).exists():
        raise AlbertError(
            f"--config {config} is neither a file nor a known size. Known sizes: "
            f"{', '.join(sizes)}"
        )
    return AlbertBackbone(**config_arguments(config))


@contextlib.contextmanager
def progress_bar(title: str, *columns) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield a function `(done, total)` that updates it."""
    columns = (TextColumn("{task.description}"), BarColumn(), *columns)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def bytes_bar(title: str):
    """Show a `progress_bar` of bytes, with the rate and the remaining time."""
    return progress_bar(
        title, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    )


def shown(value: Any) -> str:
    """Format a value of a report in a few words."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list):
        more = [f"and {len(value) - 5} more"] if len(value) > 5 else []
        return ", ".join(value[:5] + more) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value or "none")


def print_summary(values: dict):
    """Print a dict as a table, one row per item."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(Text(name.replace("_", " ")), shown(value))
    console.print(table)


def _import_without_tensorflow():
    """Import `albert_tf` so that readers report bad data before TensorFlow loads."""
    os.environ["ALBERT_TF_LAZY"] = "1"
    import albert_tf  # noqa: F401

    del os.environ["ALBERT_TF_LAZY"]


def main():
    """Run the command line.

    Errors that the user can fix end in one line; any other exception is a bug and
    shows its traceback.
    """
    _import_without_tensorflow()
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    try:
        app()
    except (AlbertError, OSError) as error:
        errors.print(Text("Error:", style="bold red"), str(error), soft_wrap=True)
        sys.exit(1)
