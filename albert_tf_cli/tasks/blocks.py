"""Read files of any size in blocks, and answer them.

A file is read several times: to check it, to answer its texts and to write its records
beside the answers. Each time, every block must be that of the first time.
"""

import collections
import contextlib
import functools
import hashlib
import itertools
import json
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any

from albert_tf.executors import run_jobs, with_warnings
from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.tasks.task import Inputs, Task, as_columns
from albert_tf_lite.changes import change_check, changed_error, checked_at_end
from albert_tf_lite.unknown import TruncatedTextsWarning, issue_once

# Texts per block. A kill loses the blocks that are being computed.
BLOCK = 1000


def file_blocks(
    task: Task, path: str, columns: ColumnOptions, fields: tuple[str, ...]
) -> Callable[[], Iterator[tuple[Inputs, list[dict] | None]]]:
    """Return a function that reads a file in blocks, as `Task.blocks`."""
    # Before the first rows determine the encoding.
    check = change_check(path)
    return lambda: _unchanged(task.blocks(path, columns, fields, BLOCK), check)


def text_blocks(
    task: Task, lines: list[str], fields: tuple[str, ...]
) -> Callable[[], Iterator[tuple[Inputs, None]]]:
    """Return a function that reads lines in blocks, as `Task.blocks`."""

    def blocks() -> Iterator[tuple[Inputs, None]]:
        for start in range(0, len(lines), BLOCK):
            yield task.inputs(fields, lines[start : start + BLOCK]), None

    return blocks


def _unchanged(blocks, check):
    """Yield the blocks of a file as long as a check does not raise."""
    with checked_at_end(check):
        for block in blocks:
            check()
            yield block


class CheckedBlocks:
    """Blocks of examples that are the same each time they are read.

    All are read at once, so that an error in the last line of a file appears before
    the first text is answered.

    Args:
        read: function that reads the blocks, tuples of the input of the model and the
            records, or `None` if the examples belong to no records.
        source: name of what is read, for errors.

    Attributes:
        sizes: list of ints, the number of examples of each block.
        names: dict, whose keys are the names of the columns of all records.
        digest: string, the fingerprint of all examples and their records.
    """

    def __init__(self, read: Callable[[], Iterator[tuple]], source: str):
        self._read, self._source = read, source
        self.sizes, self._digests = [], []
        self.names: dict[str, None] = {}
        for x, records in read():
            self.sizes.append(len(as_columns(x)[0]))
            for record in records or ():
                self.names.update(dict.fromkeys(record))
            self._digests.append(_digest(x, records))
        self.digest = hashlib.sha256(b"".join(self._digests)).hexdigest()

    def __call__(self) -> Iterator[tuple]:
        """Read the blocks; raise at the first that differs."""
        for block, digest in itertools.zip_longest(self._read(), self._digests):
            if block is None or digest != _digest(*block):
                raise changed_error(self._source)
            yield block


def _digest(x, records):
    """Return the fingerprint of a block: its examples, and the records beside them."""
    values = json.dumps([x, records], default=str)
    return hashlib.sha256(values.encode()).digest()


class _Truncated:
    """The counts of truncated texts in the warnings of several blocks."""

    def __init__(self):
        self._counts = collections.Counter[tuple[str, str]]()
        self._texts_per_answer: dict[tuple[str, str], int] = {}

    def add(self, warning: TruncatedTextsWarning, answers: int) -> None:
        kind = (warning.limit, warning.part)
        self._counts[kind] += warning.count
        # A zero-shot classifier reads a text once per class.
        self._texts_per_answer[kind] = warning.total // answers

    def warnings(self, answers: int) -> Iterator[TruncatedTextsWarning]:
        """Yield a warning per limit, for the number of all answers."""
        for kind, count in self._counts.items():
            total = answers * self._texts_per_answer[kind]
            yield TruncatedTextsWarning(count, total, *kind)


def answer_blocks(
    function: Callable[[Any], list],
    blocks: Callable[[], Iterator[tuple[Any, Any]]],
    finished: int = 0,
    engine: str = "process",
    workers: int | None = None,
) -> Generator[tuple[Any, list], None, None]:
    """Yield inputs and answers of each block that is not finished, in order.

    Warnings of one kind are issued once, those of truncated texts at the end.
    """
    unfinished = itertools.islice(blocks(), finished, None)
    # Each job is the input, which comes back beside its answers, and the arguments.
    jobs = ((x, (x,)) for x, _ in unfinished)
    run = run_jobs(functools.partial(with_warnings, function), jobs, engine, workers)
    issued = set[str]()
    truncated = _Truncated()
    total = 0
    # Stop the workers at an error, not when the garbage is collected.
    with contextlib.closing(run):
        try:
            for x, (answers, messages) in run:
                total += len(answers)
                for message in messages:
                    if isinstance(message, TruncatedTextsWarning):
                        truncated.add(message, len(answers))
                    else:
                        issue_once(message, issued)
                yield x, answers
        finally:
            for warning in truncated.warnings(total):
                warnings.warn(warning, stacklevel=2)
