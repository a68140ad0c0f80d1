"""What all commands share: the application, its output, importing TensorFlow."""

import atexit
import contextlib
import difflib
import enum
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import sys
import traceback
import warnings
from typing import Annotated

import typer
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

# What an argument of the package is called on the command line, by its name there.
OPTIONS = {
    "config": "--config",
    "vocabulary": "--vocab",
    "label": "--label-column",
    "text": "--text-column",
    "text_b": "--text-b-column",
    "text_field": "--text-field",
    "keep_unpaired": "--keep-unpaired",
    "masked": "--masked",
    "marked_labels": "--marked-labels",
    "block_size": "--block-size",
    "sequence_length": "--sequence-length",
}

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("albert_tf", "albert_tf_cli", "albert_tf_lite", "zh")

app = typer.Typer(
    help="ALBERT for Keras 3 on TensorFlow, first-class in Chinese.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Its boxes cut the names of options at 80 columns.
    rich_markup_mode=None,
)
# What is printed comes from files and users: "[b]" and ":x:" are no markup in it.
console = Console(highlight=False, markup=False, emoji=False)
errors = Console(stderr=True, highlight=False, markup=False, emoji=False)


def _print_version(asked: bool):
    if asked:
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
        help="A checkpoint of TensorFlow 1, Hugging Face, KerasHub or this package: "
        "its directory, an archive, its prefix (.../albert_model.ckpt) or any of its "
        "files; or the name of a release, such as albert_tiny_zh."
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        help="The checkpoint's config file, if it is not beside it; without a "
        "checkpoint the size to train from random weights: a name such as "
        "albert_tiny_zh, or a config file."
    ),
]
Vocab = Annotated[
    str | None,
    typer.Option(
        help="The vocab.txt or SentencePiece model, if it is not beside the "
        "checkpoint; of any number of tokens for a named --config."
    ),
]

LabelColumn = Annotated[
    str | None,
    typer.Option(help="Name or number (from 1) of the column with the label."),
]
TextAColumn = Annotated[
    str | None,
    typer.Option(help="Name or number (from 1) of the column with the text."),
]
TextBColumn = Annotated[
    str | None,
    typer.Option(help="The same of the second text, if an example is a pair."),
]
BatchSize = Annotated[int, typer.Option(min=1, help="Examples a step.")]


def choices(name, *values):
    """The type of an option that takes one of these strings."""
    return enum.Enum(name, {value: value for value in values}, type=str)


Layout = choices("Layout", "keras", "google", "albert_zh", "huggingface", "kerashub")


def import_readers():
    """Let `albert_tf.data` be imported without TensorFlow, which takes seconds.

    So what is wrong with a file is told at once. `import_tensorflow` makes the package
    whole.
    """
    if "albert_tf" not in sys.modules:
        spec = importlib.util.find_spec("albert_tf")
        sys.modules["albert_tf"] = importlib.util.module_from_spec(spec)


def import_tensorflow():
    """Import it, and the whole package; a line says so meanwhile."""
    status = contextlib.nullcontext()
    if console.is_terminal:
        status = console.status("Importing TensorFlow")
    with status, _backend_named():
        package = sys.modules.get("albert_tf")
        if package is not None and not hasattr(package, "__version__"):
            package.__spec__.loader.exec_module(package)
        import albert_tf.models  # noqa: F401


@contextlib.contextmanager
def _backend_named():
    """Say which setting asks for a backend of Keras that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "torch", "openvino"):
            raise
        raise ImportError(
            f"Keras is set to the backend {error.name}, which is not installed. "
            f'Install it, or set KERAS_BACKEND=tensorflow (or "backend" in '
            "~/.keras/keras.json)."
        ) from error


def state_folder(output):
    """The folder of a training that is not done, in its output directory."""
    import_readers()
    from albert_tf.files import BACKUP

    return pathlib.Path(output) / BACKUP


def releases():
    """The table of releases, dicts by name, read without TensorFlow."""
    (folder,) = importlib.util.find_spec("albert_tf").submodule_search_locations
    file = pathlib.Path(folder, "checkpoints", "releases.json")
    return json.loads(file.read_text("utf-8"))["releases"]


def check_checkpoint(name):
    """Refuse what is no file, no address and no release, before TensorFlow is there."""
    path = pathlib.Path(name)
    # A prefix, or a name of one of its files.
    prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path.name)
    is_prefix = (path.parent / f"{prefix}.index").is_file()
    known = releases()
    if path.exists() or is_prefix or name.startswith("hf://") or name in known:
        return
    similar = difflib.get_close_matches(name, known, 1)
    hint = f" Is {similar[0]} meant?" if similar else ""
    raise FileNotFoundError(
        f"There is no checkpoint at {name}: no folder, file or release.{hint} "
        "`albert-tf download` lists the releases."
    )


def check_files(*names):
    """Refuse names that are no files, `None` left out, before TensorFlow is there."""
    for name in names:
        if name is not None and not pathlib.Path(name).is_file():
            raise FileNotFoundError(f"{name} is no file.")


def random_backbone(config, vocabulary_size):
    """A backbone of a named size, or of a config file of any layout.

    `vocabulary_size`, if not `None`, takes the place of that of a named size.
    """
    import zh
    from albert_tf.backbone import SIZES, AlbertBackbone
    from albert_tf.checkpoints import config_arguments

    sizes = {**SIZES, **zh.SIZES}
    if config in sizes:
        rows = {"vocabulary_size": vocabulary_size} if vocabulary_size else {}
        return AlbertBackbone(**{**sizes[config], **rows})
    if not pathlib.Path(config).exists():
        raise ValueError(
            f"--config {config} is neither a file nor a known size. Known sizes: "
            f"{', '.join(sizes)}"
        )
    return AlbertBackbone(**config_arguments(config))


@contextlib.contextmanager
def progress_bar(title, *columns):
    """A bar that goes when it is done; gives a function `(done, total)` to move it."""
    columns = (TextColumn("{task.description}"), BarColumn(), *columns)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def bytes_bar(title):
    """A `progress_bar` of bytes: done, rate, time left."""
    return progress_bar(
        title, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    )


def shown(value):
    """A value of a report, in a few words."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list):
        more = [f"and {len(value) - 5} more"] if len(value) > 5 else []
        return ", ".join(value[:5] + more) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value or "none")


def print_summary(values):
    """Print a dict of what was found or done, a row each."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(Text(name.replace("_", " ")), shown(value))
    console.print(table)


def main():
    """Run the command line; what a user did wrong ends in one line."""
    # A zh.py of the user's does not take the place of this package's.
    sys.path.insert(0, str(ROOT))
    # All that is left to say then is LiteRT's, which tells what it frees.
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))
    warnings.formatwarning = lambda x, *_, **__: f"Warning: {in_options(str(x))}\n"
    try:
        app()
    except (OSError, ValueError, TypeError, ImportError) as error:
        if not _is_refusal(error):
            raise
        told = in_options(str(error))
        errors.print(Text("Error:", style="bold red"), told, soft_wrap=True)
        sys.exit(1)


def in_options(message):
    """A message of the package with what its arguments are called here."""
    pattern = "|".join(OPTIONS)
    return re.sub(f"`({pattern})=`", lambda found: OPTIONS[found[1]], message)


def _is_refusal(error):
    """Whether the system or a `raise` of ours ended the command.

    Whatever else ends it is a bug, of ours or of a library, and shows its traceback.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    folder = pathlib.Path(last.filename).parent
    is_ours = any(folder.is_relative_to(ROOT / name) for name in PACKAGES)
    return isinstance(error, OSError) or is_ours and last.line.startswith("raise ")
