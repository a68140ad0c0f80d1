"""Commands of frozen options, options that several commands have, and their groups."""

import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer
import typer.core

from albert_tf.files import check_directory
from albert_tf_cli.shared.chinese_help import Translated
from albert_tf_cli.shared.early_checks import complete_checkpoint
from albert_tf_cli.shared.progress import progress_lines

GROUPS = (
    "Arguments",
    "Data",
    "Model",
    "Masks",
    "Training",
    "Output",
    "Options",
    "Advanced",
)


class Group(Translated, typer.core.TyperGroup):
    """The commands of `albert-tf`."""


class Command(Translated, typer.core.TyperCommand):
    """A command whose help lists its options in groups, in the order of `GROUPS`.

    Its context's `obj` is the function that `progress_lines` yields.
    """

    def invoke(self, ctx):
        with progress_lines(ctx.info_name) as report_progress:
            ctx.obj = report_progress
            return super().invoke(ctx)

    def parse_args(self, ctx, args):
        # A shell does not replace ~ in quotes and after "--output=".
        home = os.path.expanduser("~/")
        args = [re.sub("^(--[^=]+=|)~/", lambda x: x[1] + home, x) for x in args]
        return super().parse_args(ctx, args)

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


def takes_options(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function `(context, options)`.

    The annotation of `options` is a frozen dataclass. Its fields are the options of
    the command, declared as typer's, in the order of `--help`.
    """
    options_class = inspect.get_annotations(function)["options"]

    @functools.wraps(function)
    def command(context: typer.Context, **values: Any) -> None:
        function(context, options_class(**values))

    parameters = [
        inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
    ]
    for field in dataclasses.fields(options_class):
        is_required = field.default is dataclasses.MISSING
        parameters.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if is_required else field.default,
                annotation=field.type,
            )
        )
    # typer reads both.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {x.name: x.annotation for x in parameters}
    return command


def _option(group: str, help: str, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=group, **settings)


# Declare an option in a group: a help text, and optionally its names and limits.
data_option = functools.partial(_option, "Data")
model_option = functools.partial(_option, "Model")
mask_option = functools.partial(_option, "Masks")
training_option = functools.partial(_option, "Training")
output_option = functools.partial(_option, "Output")
advanced_option = functools.partial(_option, "Advanced")


def _checked_directory(path: str | None) -> str | None:
    if path:
        check_directory(path)
    return path


# An option of `output_option` that names a directory.
directory_option = functools.partial(output_option, callback=_checked_directory)

Layout = Literal["keras", "google", "albert_zh", "huggingface", "kerashub"]

Checkpoint = Annotated[
    str,
    typer.Argument(
        help="Checkpoint of TensorFlow 1, Hugging Face, KerasHub or this package: its "
        "directory, an archive, its prefix (.../albert_model.ckpt), any of its files, "
        "or the name of a release such as albert_tiny_zh. CHECKPOINT:HEAD chooses one "
        "of several heads.",
        autocompletion=complete_checkpoint,
    ),
]
Model = Annotated[
    str,
    typer.Argument(
        help="Directory written by `finetune`.",
        autocompletion=complete_checkpoint,
    ),
]
OutputDirectory = Annotated[
    str, typer.Argument(help="Output directory.", callback=_checked_directory)
]
Overwrite = Annotated[
    bool,
    output_option(
        "Replace a checkpoint of the same layout in the directory.", "--overwrite"
    ),
]

LabelColumn = Annotated[
    str | None, data_option("Name or number (from 1) of the label column.")
]
TextColumn = Annotated[
    str | None, data_option("Name or number (from 1) of the text column.")
]
TextBColumn = Annotated[
    str | None, data_option("Name or number of the column of the second text.")
]
Encoding = Annotated[
    str | None,
    data_option("Encoding of the files: gb18030, big5, ... Default: by their content."),
]
Sheet = Annotated[
    str | None,
    data_option("Sheet of an .xlsx file. Default: the first visible one with cells."),
]
LabelSeparator = Annotated[
    str | None,
    data_option("Separator of the labels of a text, for multi-label. Default: |."),
]
LabelMap = Annotated[
    str | None,
    data_option(
        "Names of the labels in the model, for other names in the file or in the "
        "answers: 1=好评,0=差评."
    ),
]
SkipInvalid = Annotated[
    bool, data_option("Skip examples with an invalid label.", "--skip-invalid")
]
StartCheckpoint = Annotated[
    str | None,
    model_option(
        "Checkpoint to start from, a path or a release, or CHECKPOINT:HEAD.",
        autocompletion=complete_checkpoint,
    ),
]
Config = Annotated[
    str | None, model_option("Config file of the checkpoint, if it is elsewhere.")
]
Vocab = Annotated[
    str | None, model_option("vocab.txt or SentencePiece model, if it is elsewhere.")
]
Precision = Annotated[
    Literal["float32", "bfloat16", "auto"],
    training_option("Computation; auto is bfloat16 on processors with units for it."),
]
Seed = Annotated[int, training_option("Random seed.", min=0, max=2**31 - 1)]
EmaMomentum = Annotated[
    float | None,
    advanced_option("Momentum of averaged weights, such as 0.999.", min=0, max=0.9999),
]
GradientAccumulationSteps = Annotated[
    int | None, advanced_option("Batches per update of the weights.", min=2)
]
BatchSize = Annotated[
    int | None, advanced_option("Examples per step. Default: by length.", min=1)
]
Workers = Annotated[
    int | None, advanced_option("Processes. Default: one per CPU.", min=1)
]
Json = Annotated[bool, output_option("Print JSON.", "--json")]
To = Annotated[Layout, output_option("Layout of the checkpoint to write.")]
