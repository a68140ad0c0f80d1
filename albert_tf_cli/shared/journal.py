"""Keep the answers of an unfinished run: a line of settings, then a line per block."""

import contextlib
import json
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

from albert_tf.locks import only_writer, remove_unneeded
from albert_tf.writing_errors import name_final_path
from albert_tf_lite.errors import AlbertError


def append(journal: BinaryIO, answers: list) -> None:
    """Add the answers of a block."""
    journal.write(json.dumps(answers).encode() + b"\n")
    journal.flush()


def read_journal(journal: BinaryIO) -> Iterator[list]:
    """Yield the answers of each block."""
    journal.seek(0)
    journal.readline()
    return map(json.loads, journal)


def _intact_lengths(path, header, run, sizes):
    """Return the bytes of the header and of each block of answers before any damage.

    A process that was killed may have left its last line incomplete.
    """
    lengths = [len(header)]
    with open(path, "rb") as lines:
        before = lines.readline()
        if before != header and lines.peek(1):
            raise AlbertError(
                f"{path} holds the answers of an unfinished run "
                f"{_difference(before, run)}. Run its command again, remove the file, "
                "or choose another --output."
            )
        for number, size in enumerate(sizes, start=2):
            line = lines.readline()
            if not line.endswith(b"\n"):
                break
            try:
                is_intact = len(json.loads(line)) == size
            except (ValueError, TypeError, RecursionError):
                is_intact = False
            if not is_intact:
                warnings.warn(
                    f"Line {number} of {path}, the answers of an unfinished run, is "
                    "damaged. These and the later answers are computed again.",
                    stacklevel=2,
                )
                break
            lengths.append(len(line))
    return lengths


def _difference(header, run):
    """Return how the first line of a journal differs from the settings of a run."""
    try:
        old = dict(json.loads(header))
    except (ValueError, TypeError, RecursionError):
        return "whose settings are damaged"
    changed = [name for name, x in run.items() if old.get(name) != x]
    return f"with other {', '.join(changed)}"


@contextlib.contextmanager
def open_journal(
    output: str, run: dict[str, Any], sizes: list[int]
) -> Iterator[tuple[BinaryIO, int]]:
    """Yield the file for the answers of a run, and the number of blocks it has.

    It is removed at the end, and after an error if it has no blocks. Raise if it holds
    blocks of another run. `sizes` are the numbers of texts of all blocks.
    """
    path = pathlib.Path(output)
    path = path.with_name(f".{path.name}.answers")
    path.parent.mkdir(parents=True, exist_ok=True)
    header = json.dumps(run).encode() + b"\n"
    with name_final_path(output), only_writer(path), contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "a+b"))
        lengths = _intact_lengths(path, header, run, sizes)
        finished = len(lengths) - 1
        file.truncate(sum(lengths) if finished else 0)
        if not finished:
            file.write(header)
            file.flush()
        try:
            yield file, finished
        except BaseException:
            if path.stat().st_size == len(header):
                stack.close()
                remove_unneeded(path)
            raise
        # Windows removes no open file.
        stack.close()
        remove_unneeded(path)
