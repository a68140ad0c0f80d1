"""The `albert-tf` command line, one module per group of commands."""

import codecs
import importlib.metadata
import importlib.util
import io
import re
import signal
import sys
import warnings
from typing import Any

for _name in ("typer", "rich"):
    if importlib.util.find_spec(_name) is None:
        sys.exit(f"The command line needs {_name}. Run: pip install 'albert-tf[cli]'")

# ruff: noqa: E402
import typer
from rich.text import Text

from albert_tf_lite.environment import environment

# Readers report bad data before TensorFlow is imported.
with environment({"ALBERT_TF_LAZY": "1"}):
    import albert_tf  # noqa: F401

from albert_tf_cli.commands.convert import convert
from albert_tf_cli.commands.demo import demo
from albert_tf_cli.commands.download import download
from albert_tf_cli.commands.evaluate import evaluate
from albert_tf_cli.commands.export import export
from albert_tf_cli.commands.finetune import finetune
from albert_tf_cli.commands.inspect import inspect
from albert_tf_cli.commands.predict import predict
from albert_tf_cli.commands.pretrain import pretrain
from albert_tf_cli.commands.pretrain_data import pretrain_data
from albert_tf_cli.commands.prune import prune
from albert_tf_cli.shared.console import errors, escaped
from albert_tf_cli.shared.options import Command, Group
from albert_tf_lite.errors import AlbertError, Process
from albert_tf_lite.unknown import kind_of

__all__ = ["app", "main"]

# Options whose names are not those of the arguments that error messages name.
_OPTIONS = {
    "label": "--label-column",
    "text": "--text-column",
    "text_b": "--text-b-column",
    "separator": "--label-separator",
    "vocabulary": "--vocab",
}

app = typer.Typer(
    cls=Group,
    help="A ready-made Chinese text model of 11 MB that runs on a CPU, and the Keras "
    "code to fine-tune, convert and ship it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # The boxes of rich truncate option names at 80 columns.
    rich_markup_mode=None,
)
# In the order of a project, as the help lists them.
_COMMANDS = (
    pretrain_data,
    pretrain,
    finetune,
    evaluate,
    predict,
    demo,
    export,
    convert,
    inspect,
    prune,
    download,
)
for _command in _COMMANDS:
    # Otherwise, typer truncates the summary.
    _summary, _, _ = (_command.__doc__ or "").partition("\n")
    app.command(cls=Command, short_help=_summary)(_command)


def _print_version(is_requested: bool):
    if is_requested:
        print(f"albert-tf {importlib.metadata.version('albert-tf')}")
        raise typer.Exit()


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Show the version and exit.",
    ),
):
    pass


def main():
    """Run the command line.

    Errors that the user can fix end in one line; any other exception is a bug and
    shows its traceback.
    """
    printed = set()

    def format_warning(message, *_, **__):
        # Once: each epoch scores the same texts.
        if kind_of(message) in printed:
            return ""
        printed.add(kind_of(message))
        return f"Warning: {escaped(_with_options(message))}\n"

    warnings.formatwarning = format_warning
    Process.is_ours = True
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("albert-tf", _replace)
        sys.stdout.reconfigure(errors="albert-tf")
    # As Ctrl-C, so that worker processes and temporary files are removed.
    handler = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        app()
    except (AlbertError, OSError) as error:
        message = _with_options(error)
        if isinstance(error, OSError) and error.filename is not None:
            message = f"{error.filename}: {error.strerror}"
        errors.print(Text("Error:", style="bold red"), message, soft_wrap=True)
        sys.exit(1)
    finally:
        Process.is_ours = False
        signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)


def _replace(error):
    """Replace what the encoding of standard output lacks by "?", and warn once."""
    if error.encoding != "utf-8":  # It lacks only the halves of surrogate pairs.
        warnings.warn(
            f"Standard output is {error.encoding}, which lacks some characters. They "
            "are printed as ?. Set PYTHONIOENCODING=utf-8 for a terminal of UTF-8.",
            stacklevel=2,
        )
    return codecs.replace_errors(error)


def _with_options(message):
    """Return a message with options in place of the arguments of functions.

    Arguments for which the command has no option are named as those of Python.
    """

    def option(found):
        name = found[1]
        option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
        is_accepted = option in _accepted_options()
        return option if is_accepted else f"{found[0]} (in Python)"

    return re.sub(r"`(\w+)=`", option, str(message))


def _accepted_options():
    """Return the options of the command that runs."""
    commands: Any = typer.main.get_command(app)
    names = [x for x in sys.argv[1:] if x in commands.commands]
    parameters = commands.commands[names[0]].params if names else []
    return {option for parameter in parameters for option in parameter.opts}
