"""Texts without labels, for `finetune --unlabelled`."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.shared.early_checks import check_files
from albert_tf_cli.tasks.task import Examples, Inputs, Task, as_columns, as_inputs
from albert_tf_lite.changes import unchanged
from albert_tf_lite.errors import AlbertError

# Rows of a file that are read together.
BLOCK = 10_000


@dataclasses.dataclass(frozen=True)
class Unlabelled:
    """Texts to learn without labels: those of files, then those of train.

    Attributes:
        texts: list of strings, without space around them.
        examples: the different examples of the files without a text of dev or test, as
            a model takes them.
        count: int, the examples of the files that have one of these texts.
        left_out: int, the texts of the files that are in dev or test, too.
    """

    texts: list[str]
    examples: Inputs
    count: int
    left_out: int


def read_unlabelled(
    task: Task,
    paths: Sequence[str],
    columns: ColumnOptions,
    parts: dict[str, Examples],
) -> Unlabelled:
    """Read files as `predict` does, without the texts of dev and test.

    Args:
        task: the task of the command line.
        paths: the files.
        columns: those of the labelled files, which these may lack.
        parts: the labelled examples by name: `"train"`, `"dev"` and perhaps `"test"`.

    Raises:
        AlbertError: if no example is left.
    """
    fields = task.unlabelled_fields(parts["train"])
    held_out = set[str]()
    for name, part in parts.items():
        if name != "train":
            held_out.update(_texts(part.x))
    texts, rows, count, left_out = [], [], 0, 0
    for path in paths:
        for row in _rows(task, path, columns, fields):
            of_row = _strings(row)
            others = [text for text in of_row if text not in held_out]
            left_out += len(of_row) - len(others)
            if len(others) == len(of_row):
                rows.append(row)
            if others:
                texts += others
                count += 1
    if not count:
        raise AlbertError(
            f"No text of {', '.join(paths)} is left: {left_out:,} are texts of dev or "
            "test, too. --unlabelled needs other texts."
        )
    texts += [text for text in _texts(parts["train"].x) if text not in held_out]
    return Unlabelled(texts, _distinct(rows, len(fields)), count, left_out)


def _texts(x: Inputs) -> Iterator[str]:
    """Yield all texts of examples, without space around them."""
    for row in zip(*as_columns(x), strict=True):
        yield from _strings(row)


def _distinct(rows: list[tuple], parts: int) -> Inputs:
    """Return different rows as a model takes them."""
    by_texts = {tuple(_strings(row)): row for row in rows}
    columns = [[row[i] for row in by_texts.values()] for i in range(parts)]
    return as_inputs(columns)


def _strings(row: Iterable[str | list[str]]) -> list[str]:
    """Return the texts of an example, also those of its choices, without space."""
    texts: list[str] = []
    for part in row:
        texts += [part] if isinstance(part, str) else part
    return [text.strip() for text in texts]


def _rows(task, path, columns, fields):
    """Return the examples of a file, tuples of their parts."""
    from albert_tf.data.files.tables import MissingColumnError, holds_lines

    check_files(path)
    plain = ColumnOptions(encoding=columns.encoding)
    if columns.named and not holds_lines(path, columns.encoding, fields):
        # A table of the form of the labelled files, or one without their columns.
        with contextlib.suppress(MissingColumnError):
            return _read(task, path, columns, fields)
    return _read(task, path, plain, fields)


def _read(task, path, columns, fields):
    rows = []
    with unchanged(path):
        for x, _ in task.blocks(path, columns, fields, BLOCK):
            rows += zip(*as_columns(x), strict=True)
    return rows
