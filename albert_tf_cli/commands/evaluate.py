"""The command `albert-tf evaluate`."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from albert_tf_cli.shared.column_options import columns_of
from albert_tf_cli.shared.console import errors, print_json
from albert_tf_cli.shared.early_checks import check_checkpoint, check_files
from albert_tf_cli.shared.error_report import write_report
from albert_tf_cli.shared.exported_files import open_network
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import (
    BatchSize,
    Encoding,
    Json,
    LabelColumn,
    LabelMap,
    LabelSeparator,
    Model,
    Sheet,
    SkipInvalid,
    TextBColumn,
    TextColumn,
    directory_option,
    takes_options,
)
from albert_tf_cli.shared.score_output import print_scores
from albert_tf_cli.tasks import Task, task_named
from albert_tf_cli.tasks.reading import check_support, checked_reader, read_remembered
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel

if TYPE_CHECKING:
    from albert_tf.models import AlbertTask

# Number of mistakes with colours. Each takes as long as 100 predictions.
EXPLAINED = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """The options of `albert-tf evaluate`."""

    model: Model
    file: Annotated[
        str, typer.Argument(help="Labelled examples that `finetune` reads.")
    ]
    label_column: LabelColumn = None
    text_column: TextColumn = None
    text_b_column: TextBColumn = None
    label_separator: LabelSeparator = None
    label_map: LabelMap = None
    encoding: Encoding = None
    sheet: Sheet = None
    skip_invalid: SkipInvalid = False
    report_directory: Annotated[
        str | None,
        directory_option(
            "Directory for report.html and report.json: scores, confusion matrix and "
            "the worst mistakes.",
            "--report",
        ),
    ] = None
    as_json: Json = False
    batch_size: BatchSize = None


@takes_options
def evaluate(context: typer.Context, options: EvaluateOptions) -> None:
    """Evaluate a model on labelled examples.

    \b
    Examples:
      albert-tf evaluate my_model test.tsv
      albert-tf evaluate my_model test.tsv --report my_report
    """
    check_checkpoint(options.model)
    check_files(options.file)
    opened = _open(options)
    if not opened.task.read:
        raise AlbertError(
            f"{options.model} is a model for {opened.task.name}, which cannot be "
            "evaluated."
        )
    if options.report_directory:
        check_support("--report", "mistakes", opened.task)
    read = checked_reader(opened.task, options.skip_invalid)
    examples = read_remembered(
        options.model,
        columns_of(options),
        lambda columns: read(options.file, columns, opened.arguments),
    )
    predicted = opened.task.predict(opened.model, examples.x, options.batch_size)
    scores = opened.task.report(opened.model, examples, predicted)
    if options.report_directory:
        mistakes = opened.task.mistakes(opened.model, examples, predicted)
        _write_report(options, opened, scores, mistakes)
    if options.as_json:
        print_json(scores, indent=2)
    else:
        print_scores(scores)


class _Opened(NamedTuple):
    """A model or an exported file, and the arguments that its examples depend on."""

    task: Task
    model: "AlbertTask | ExportedModel"
    arguments: dict[str, Any]


def _open(options: EvaluateOptions) -> _Opened:
    """Open a model, without TensorFlow if an exported file beside it answers."""
    # A report explains mistakes, which needs gradients.
    if not options.report_directory and (network := open_network(options.model)):
        return _Opened(task_named(network.task), network, network.settings)
    import_tensorflow()
    from albert_tf import pipeline

    answer = pipeline(path=options.model)
    return _Opened(task_named(answer.task), answer.model, answer.model.get_config())


def _write_report(options, opened, scores, mistakes):
    """Write the report, with the contributions of characters to the first mistakes."""
    write_report(
        options.report_directory,
        f"{options.model} on {options.file}",
        scores,
        mistakes,
        _attributions(opened, mistakes[:EXPLAINED]),
    )
    page = pathlib.Path(options.report_directory) / "report.html"
    # To standard error, because --json prints to standard output.
    errors.print(f"Wrote {page} ({len(mistakes)} mistakes).", soft_wrap=True)


def _attributions(opened, mistakes):
    """Return the contributions to the predicted class, by column of each mistake."""
    if not opened.task.explain or not mistakes:
        return []
    explain = opened.task.explain(opened.model)
    attributions = []
    for mistake in mistakes:
        columns = [name for name in ("text", "text_b") if name in mistake]
        texts = tuple(mistake[name] for name in columns)
        values = explain(texts, mistake.get("predicted")).values
        attributions.append(dict(zip(columns, values, strict=True)))
    return attributions
