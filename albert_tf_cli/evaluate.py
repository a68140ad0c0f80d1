"""The command `albert-tf evaluate`, and its error report."""

import json
import pathlib
from typing import Annotated

import typer

from albert_tf_cli.common import (
    check_checkpoint,
    check_files,
    console,
    errors,
    import_tensorflow,
)
from albert_tf_cli.options import (
    BatchSize,
    Json,
    LabelColumn,
    Model,
    TextBColumn,
    TextColumn,
    data_option,
    output_option,
)
from albert_tf_cli.tasks import TASKS, Columns, Task, load_task
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
    model: Model,
    file: Annotated[str, typer.Argument(help="Labelled examples, as for `finetune`.")],
    label_column: LabelColumn = None,
    text_column: TextColumn = None,
    text_b_column: TextBColumn = None,
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
    as_json: Json = False,
    batch_size: BatchSize = None,
):
    """Evaluate a model on labelled examples.

    \b
    Examples:
      albert-tf evaluate my_model test.tsv
      albert-tf evaluate my_model test.tsv --report my_report --train train.tsv
    """
    if train and not report_directory:
        raise AlbertError("--train needs --report DIRECTORY.")
    check_checkpoint(model)
    check_files(file, train)
    import_tensorflow()
    task, trained = load_task(model)
    if task.name not in TASKS:
        raise AlbertError(
            f"{model} is a model for {task.name}, which cannot be evaluated."
        )
    columns = Columns(label_column, text_column, text_b_column)
    columns, known = remembered_columns(model, columns), trained.get_config()
    if report_directory:
        _check_report(task, train)
    examples = task.read(file, columns, known)
    report = task.report(trained, examples, batch_size)
    if report_directory:
        from albert_tf.evaluation import ErrorList, write_error_report

        lists = [_mistakes(task, trained, examples, batch_size)]
        if train and task.suspicious:
            train_examples = task.read(train, columns, known)
            rows = task.suspicious(trained, train_examples, batch_size)
            lists.append(ErrorList("suspicious", *_NOTES["suspicious"], rows))
        labels = getattr(trained, "class_names", None)
        title = f"{model} on {file}"
        write_error_report(report_directory, title, report.values, lists, labels)
        counts = ", ".join(f"{len(part.rows)} {part.name}" for part in lists)
        page = pathlib.Path(report_directory) / "report.html"
        # To standard error, because --json prints to standard output.
        errors.print(f"Wrote {page} ({counts}).", soft_wrap=True)
    if as_json:
        print(json.dumps(report.values, ensure_ascii=False, indent=2))
        return
    for part in report.shown:
        console.print(part, soft_wrap=isinstance(part, str))


def remembered_columns(model: str, given: Columns) -> Columns:
    """Return the given columns, or those that the model was trained with."""
    file = pathlib.Path(model, "metrics.json")
    if any(given) or not file.exists():
        return given
    settings = json.loads(file.read_text("utf-8")).get("settings", {})
    return Columns(*(settings.get(f"{name}_column") for name in Columns._fields))


def check_support(option_name: str, method: str, task: Task) -> None:
    """Raise if a task lacks an optional method, which an option needs."""
    if getattr(task, method) is None:
        names = [name for name, other in TASKS.items() if getattr(other, method)]
        raise AlbertError(
            f"{option_name} does not apply to {task.name}, only to {', '.join(names)}."
        )


# === The error report ===


def _check_report(task, train):
    check_support("--report", "mistakes", task)
    if train:
        check_support("--train", "suspicious", task)


def _mistakes(task, model, examples, batch_size):
    """Return the mistakes, the first with attributions to the predicted class."""
    from albert_tf.evaluation import ErrorList

    rows = task.mistakes(model, examples, batch_size)
    attributions = []
    if task.explain and rows:
        explain = task.explain(model)
        for row in rows[:EXPLAINED]:
            columns = [name for name in ("text", "text_b") if name in row]
            texts = tuple(row[name] for name in columns)
            values = explain(texts, row.get("predicted")).values
            attributions.append(dict(zip(columns, values, strict=True)))
    return ErrorList("mistakes", *_NOTES["mistakes"], rows, attributions)
