"""Read labelled examples as a command and an earlier training ask for."""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import Any, TypeVar

from albert_tf.extras import import_extra
from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.shared.early_checks import check_files, read_metrics
from albert_tf_cli.shared.label_map import parse_label_map
from albert_tf_cli.tasks.task import TASKS, Examples, Task
from albert_tf_lite.changes import unchanged
from albert_tf_lite.errors import AlbertError

Read = TypeVar("Read")


def read_remembered(
    model: str, columns: ColumnOptions, read: Callable[[ColumnOptions], Read]
) -> Read:
    """Return what `read` returns for columns, or for those of the training.

    If the file lacks a column of the training, columns are found by default.
    """
    from albert_tf.data.files.tables import MissingColumnError

    settings = read_metrics(model).get("settings")
    if not settings:
        return read(columns)
    columns = dataclasses.replace(
        columns,
        label_separator=columns.label_separator or settings.get("label_separator"),
        label_map=columns.label_map or parse_label_map(settings.get("label_map")),
    )
    if columns.named:
        return read(columns)
    remembered = dataclasses.replace(
        columns,
        label=settings.get("label_column"),
        text=settings.get("text_column"),
        text_b=settings.get("text_b_column"),
    )
    with contextlib.suppress(MissingColumnError):
        return read(remembered)
    return read(columns)


def checked_reader(task: Task, skip_invalid: bool = False) -> Callable[..., Examples]:
    """Return the method `read` of a task, with the option --skip-invalid.

    Readers read a file several times, for its encoding first. It raises if the file
    changes meanwhile.
    """
    from albert_tf.data.files.table_formats import check_sheets

    for package in task.requires:
        import_extra(package)

    def read(path: str, columns: ColumnOptions, *args: Any, **kwargs: Any) -> Examples:
        for role in columns.named:
            option = f"--{role.replace('_', '-')}-column"
            check_support(option, "takes_columns", task)
        if columns.label_separator:
            check_support("--label-separator", "splits_labels", task)
        if columns.label_map:
            check_support("--label-map", "takes_label_map", task)
        # Not a pipe, such as <(zcat train.tsv.gz), which can be read once. RACE has
        # directories.
        if not pathlib.Path(path).is_dir():
            check_files(path)
        if columns.sheet is not None:
            check_sheets(path)
        with unchanged(path):
            return task.read(path, columns, *args, **kwargs)

    if skip_invalid:
        check_support("--skip-invalid", "skips_invalid", task)
        return functools.partial(read, skip_invalid=True)
    return read


def check_support(option_name: str, attribute: str, task: Task) -> None:
    """Raise if a task lacks an optional attribute, which an option needs."""
    if getattr(task, attribute) is None:
        names = [name for name, other in TASKS.items() if getattr(other, attribute)]
        raise AlbertError(
            f"{option_name} does not apply to {task.name}, only to {', '.join(names)}."
        )
