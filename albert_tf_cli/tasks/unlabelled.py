"""Texts without labels, for `finetune --unlabelled`."""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.shared.early_checks import check_files
from albert_tf_cli.tasks.task import Examples, Inputs, Task, as_columns
from albert_tf_lite.changes import unchanged
from albert_tf_lite.errors import AlbertError

# Rows of a file that are read together.
BLOCK = 10_000


@dataclasses.dataclass(frozen=True)
class Unlabelled:
    """Examples without labels.

    Attributes:
        x: the examples, as input of the model.
        left_out: int, the examples of the files that are not in `x`, because one of
            their texts is in dev or test.
    """

    x: Inputs
    left_out: int

    def __len__(self) -> int:
        return len(as_columns(self.x)[0])


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
    held_out = held_out_texts(parts)
    rows, left_out = [], 0
    for path in paths:
        for row in _rows(task, path, columns, fields):
            if held_out.isdisjoint(_strings(row)):
                rows.append(row)
            else:
                left_out += 1
    if not rows:
        raise AlbertError(
            f"No text of {', '.join(paths)} is left: {left_out:,} are texts of dev or "
            "test, too. --unlabelled needs other texts."
        )
    examples = tuple(map(list, zip(*rows, strict=True)))
    return Unlabelled(examples if len(fields) > 1 else examples[0], left_out)


def held_out_texts(parts: dict[str, Examples]) -> set[str]:
    """Return the texts of dev and test, without space around them."""
    held_out = [part.x for name, part in parts.items() if name != "train"]
    return set(itertools.chain.from_iterable(map(all_texts, held_out)))


def all_texts(x: Inputs) -> list[str]:
    """Return all texts of examples, each once, without space around them."""
    rows = zip(*as_columns(x), strict=True)
    return list(dict.fromkeys(itertools.chain.from_iterable(map(_strings, rows))))


def _strings(row: Iterable[str | list[str]]) -> Iterator[str]:
    """Yield the texts of an example, also those of its choices."""
    for part in row:
        for text in [part] if isinstance(part, str) else part:
            yield text.strip()


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
