"""The command `albert-tf evaluate`, and its error report."""

import contextlib
import itertools
import json
import pathlib
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from albert_tf_cli import common, options
from albert_tf_cli.options import data_option, output_option
from albert_tf_cli.tasks import TASKS, Columns, Task, task_named
from albert_tf_lite.errors import AlbertError

# Number of mistakes with colours. Each takes as long as 100 predictions.
EXPLAINED = 20

# By list of the report, its title and note.
_NOTES = {
    "mistakes": (
        "The worst mistakes",
        "Sorted by loss. Examples are counted from 1, without the header of the file. "
        f"In the first {EXPLAINED} texts of a classifier, blue characters support the "
        "prediction and orange ones oppose it (integrated gradients).",
    ),
    "suspicious": (
        "Training examples whose label looks wrong",
        "A cross-validated logistic regression on the TF-IDF of characters (for pairs, "
        "on the features of the model) predicts another label. Sorted by the "
        "probability of the given label.",
    ),
}


def evaluate(
    model: options.Model,
    file: Annotated[str, typer.Argument(help="Labelled examples, as for `finetune`.")],
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    train: Annotated[
        str | None,
        data_option("With --report: training examples, to list suspicious labels."),
    ] = None,
    report_directory: Annotated[
        str | None,
        output_option(
            "Directory for report.html and report.json: scores, confusion matrix and "
            "the worst mistakes.",
            "--report",
        ),
    ] = None,
    as_json: options.Json = False,
    batch_size: options.BatchSize = None,
):
    """Evaluate a model on labelled examples.

    \b
    Examples:
      albert-tf evaluate my_model test.tsv
      albert-tf evaluate my_model test.tsv --report my_report --train train.tsv
    """
    if train and not report_directory:
        raise AlbertError("--train needs --report DIRECTORY.")
    common.check_checkpoint(model)
    common.check_files(file, train)
    common.import_tensorflow()
    from albert_tf import pipeline

    found = pipeline(path=model)
    task, trained = task_named(found.task), found.model
    if task.name not in TASKS:
        raise AlbertError(
            f"{model} is a model for {task.name}, which cannot be evaluated."
        )
    columns = Columns(label_column, text_column, text_b_column)
    known = trained.get_config()
    if report_directory:
        check_support("--report", "mistakes", task)
        if train:
            check_support("--train", "suspicious", task)
    examples = read_remembered(model, columns, lambda x: task.read(file, x, known))
    predicted = task.predict(trained, examples.x, batch_size)
    values = task.report(trained, examples, predicted)
    if report_directory:
        from albert_tf_cli.report import ErrorList, write_report

        rows = task.mistakes(trained, examples, predicted)
        colours = _attributions(task, trained, rows[:EXPLAINED])
        lists = [ErrorList("mistakes", *_NOTES["mistakes"], rows, colours)]
        if train:
            train_examples = read_remembered(
                model, columns, lambda x: task.read(train, x, known)
            )
            rows = task.suspicious(trained, train_examples, batch_size)
            lists.append(ErrorList("suspicious", *_NOTES["suspicious"], rows))
        write_report(report_directory, f"{model} on {file}", values, lists)
        counts = ", ".join(f"{len(part.rows)} {part.name}" for part in lists)
        page = pathlib.Path(report_directory) / "report.html"
        # To standard error, because --json prints to standard output.
        common.errors.print(f"Wrote {page} ({counts}).", soft_wrap=True)
    if as_json:
        print(json.dumps(values, ensure_ascii=False, indent=2))
    else:
        _print_report(values)


def _print_report(values):
    """Print values one per line, and the dicts in them as the rows of a table."""
    from albert_tf_cli.report import confusion_rows, score_rows, shown_number

    first, *rows = score_rows(values)
    if first[""]:
        rows.insert(0, first)
    else:
        for name, value in list(first.items())[1:]:
            line = f"{name.replace('_', ' ')} {shown_number(value)}"
            common.console.print(line, soft_wrap=True)
    for names, group in itertools.groupby([*rows, *confusion_rows(values)], list):
        table = Table(*names)
        for row in group:
            table.add_row(*map(shown_number, row.values()))
        common.console.print(table)


def read_remembered(model: str, given: Columns, read: Callable[[Columns], Any]) -> Any:
    """Return what `read` returns for the given columns, or those of the training.

    If the file lacks a column of the training, columns are found by default.
    """
    from albert_tf.data.tables import MissingColumnError

    file = pathlib.Path(model, "metrics.json")
    if not any(given) and file.exists():
        settings = json.loads(file.read_text("utf-8")).get("settings", {})
        names = (settings.get(f"{name}_column") for name in Columns._fields)
        with contextlib.suppress(MissingColumnError):
            return read(Columns(*names))
    return read(given)


def check_support(option_name: str, method: str, task: Task) -> None:
    """Raise if a task lacks an optional method, which an option needs."""
    if getattr(task, method) is None:
        names = [name for name, other in TASKS.items() if getattr(other, method)]
        raise AlbertError(
            f"{option_name} does not apply to {task.name}, only to {', '.join(names)}."
        )


def _attributions(task, model, rows):
    """Return the attributions to the predicted class, by column of each row."""
    if not task.explain or not rows:
        return []
    explain, found = task.explain(model), []
    for row in rows:
        columns = [name for name in ("text", "text_b") if name in row]
        texts = tuple(row[name] for name in columns)
        values = explain(texts, row.get("predicted")).values
        found.append(dict(zip(columns, values, strict=True)))
    return found
