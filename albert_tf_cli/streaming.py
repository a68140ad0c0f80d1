"""Read files of any size in blocks, and keep the answers of an unfinished run.

A file is read several times: to check it, to answer its texts and to write its records
beside the answers. Each time, every block must be that of the first time.
"""

import contextlib
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, BinaryIO

from albert_tf.files import name_final_path, only_writer
from albert_tf_cli.tasks import Columns
from albert_tf_lite.changes import change_check, changed_error
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.executors import run_jobs, with_warnings
from albert_tf_lite.unknown import issue_once

# Texts per block. A kill loses the blocks that are being computed.
BLOCK = 1000


def text_blocks(
    path: str, pairs: bool, columns: Columns
) -> Callable[[], Iterator[tuple[list[str], Any]]]:
    """Return a function that reads the texts of a file, and its tables if it has such.

    A tab joins the two texts of a pair, in which tabs become spaces.
    """
    from albert_tf.data.reading import HEAD_BYTES, encoding_of, endings, stream_lines
    from albert_tf.data.tables import table_blocks

    # Before the first rows determine the encoding.
    check = change_check(path)
    if endings(path)[0] == ".txt" and columns.text is None:
        encoding = encoding_of(path, HEAD_BYTES)
        return lambda: _unchanged(list_blocks(stream_lines(path, encoding)), check)
    read_tables = table_blocks(path, BLOCK, text=columns.text, text_b=columns.text_b)

    def blocks():
        for table in read_tables():
            x = table.texts(pairs)
            if pairs:
                parts = ([cell.replace("\t", " ") for cell in part] for part in x)
                x = list(map("\t".join, zip(*parts, strict=True)))
            yield x, table

    return lambda: _unchanged(blocks(), check)


def _unchanged(blocks, check):
    """Yield the blocks of a file as long as a check does not raise."""
    try:
        for block in blocks:
            check()
            yield block
    except Exception:
        # A change may look like damage.
        check()
        raise
    check()


def list_blocks(texts: Iterable[str]) -> Iterator[tuple[list[str], None]]:
    """Yield texts in blocks that belong to no table."""
    texts = iter(texts)
    while block := list(itertools.islice(texts, BLOCK)):
        yield block, None


class CheckedBlocks:
    """Blocks of texts that are the same each time they are read.

    All are read at once, so that an error in the last line of a file appears before
    the first text is answered.

    Args:
        read: function that reads the blocks, tuples of texts, inputs of the model and
            a table, or `None` if they belong to no table.
        source: name of what is read, for errors.

    Attributes:
        sizes: list of ints, the number of texts of each block.
        digest: string, the fingerprint of all texts and their records.
    """

    def __init__(self, read: Callable[[], Iterator[tuple]], source: str):
        self._read, self._source = read, source
        self.sizes, self._digests = [], []
        for texts, _, table in read():
            self.sizes.append(len(texts))
            self._digests.append(_digest(texts, table))
        self.digest = hashlib.sha256(b"".join(self._digests)).hexdigest()

    def __call__(self) -> Iterator[tuple]:
        """Read the blocks; raise at the first that differs."""
        for block, digest in itertools.zip_longest(self._read(), self._digests):
            if block is None or digest != _digest(block[0], block[2]):
                raise changed_error(self._source)
            yield block


def _digest(texts, table):
    """Return the fingerprint of a block: its texts, and the records beside them."""
    rows = table and table.records()
    return hashlib.sha256(json.dumps([texts, rows], default=str).encode()).digest()


def answer_blocks(
    function: Callable[[Any], list],
    blocks: Callable[[], Iterator[tuple[list[str], Any, Any]]],
    finished: int = 0,
    engine: str = "process",
    workers: int | None = None,
) -> Generator[tuple[list[str], Any, list], None, None]:
    """Yield texts, inputs and answers of each block that is not finished, in order.

    Warnings of one kind are issued once.
    """
    unfinished = itertools.islice(blocks(), finished, None)
    jobs = (((texts, x), (x,)) for texts, x, _ in unfinished)
    run = run_jobs(functools.partial(with_warnings, function), jobs, engine, workers)
    issued = set[str]()
    # Stop the workers at an error, not when the garbage is collected.
    with contextlib.closing(run):
        for (texts, x), (answers, messages) in run:
            issue_once(messages, issued)
            yield texts, x, answers


# === Answers of an unfinished run: a line of settings, then a line per block ===


def append(journal: BinaryIO, answers: list) -> None:
    """Add the answers of a block."""
    journal.write(json.dumps(answers).encode() + b"\n")
    journal.flush()


def read_journal(journal: BinaryIO) -> Iterator[list]:
    """Yield the answers of each block."""
    journal.seek(0)
    journal.readline()
    return map(json.loads, journal)


@contextlib.contextmanager
def open_journal(output: str, run: dict[str, Any]) -> Iterator[tuple[BinaryIO, int]]:
    """Yield the file for the answers of a run, and the number of blocks it has.

    It is removed at the end, and after an error if it has no blocks. Raise if it holds
    blocks of another run.
    """
    path = pathlib.Path(output)
    path = path.with_name(f".{path.name}.answers")
    path.parent.mkdir(parents=True, exist_ok=True)
    header = json.dumps(run).encode() + b"\n"
    with name_final_path(output), open(path, "a+b") as file, only_writer(path):
        with open(path, "rb") as written:
            # Without the line that a killed process has not completed.
            sizes = [len(line) for line in written if line.endswith(b"\n")]
            written.seek(0)
            before = written.readline()
        finished = len(sizes[1:])
        if finished and before != header:
            old = json.loads(before)
            changed = [name for name, x in run.items() if old.get(name) != x]
            raise AlbertError(
                f"{path} holds the answers of an unfinished run with other "
                f"{', '.join(changed)}. Run its command again, remove the file, or "
                "choose another --output."
            )
        file.truncate(sum(sizes) if finished else 0)
        if not finished:
            file.write(header)
            file.flush()
        try:
            yield file, finished
        except BaseException:
            if path.stat().st_size == len(header):
                path.unlink()
            raise
        path.unlink()
