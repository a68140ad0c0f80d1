"""Reading texts with spelling errors, and the right ones."""

from __future__ import annotations

import os
import pathlib

from albert_tf.data.encodings import read_lines
from albert_tf.data.json_files import read_json_records
from albert_tf_lite.errors import AlbertError

_KEYS = (("original_text", "correct_text"), ("source", "target"))


def read_spelling(path: str | os.PathLike) -> tuple[list[str], list[str]]:
    """Read texts and what they should be, as SIGHAN's data sets are passed on.

    Args:
        path: path of a file in UTF-8: lines of the wrong and the right text with a tab
            between them; or, if its name ends in `.json` or `.jsonl`, a list or lines
            of objects with `original_text` and `correct_text` (or `source` and
            `target`).

    Returns:
        Two lists of strings: what `AlbertSpellingCorrector.fit` takes.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it holds no texts, or a line is not as above, or its two texts
            differ in length. Says which.
    """
    path = pathlib.Path(path)
    is_json = path.suffix in (".json", ".jsonl")
    rows = _of_json(path) if is_json else _of_lines(path)
    if not rows:
        raise AlbertError(f"{path} holds no texts.")
    for place, source, target in rows:
        if len(source) != len(target):
            raise AlbertError(
                f"{place} has texts of {len(source)} and {len(target)} characters. "
                f"Expected as many, each in its place: {source[:50]!r}, {target[:50]!r}"
            )
    _, sources, targets = map(list, zip(*rows, strict=True))
    return sources, targets


def _of_lines(path):
    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        parts = line.split("\t")
        if parts == [""]:
            continue
        if len(parts) != 2:
            raise AlbertError(
                f"Line {number} of {path} has {len(parts)} columns. Expected the wrong "
                f"text and the right one with a tab between them: {line[:80]!r}"
            )
        rows.append((f"Line {number} of {path}", *parts))
    return rows


def _of_json(path):
    rows = []
    for place, record in read_json_records(path):
        is_object = isinstance(record, dict)
        found = [keys for keys in _KEYS if is_object and record.keys() >= set(keys)]
        if not found:
            raise AlbertError(
                f"{place} is not an object with original_text and correct_text: "
                f"{str(record)[:80]}"
            )
        rows.append((place, *(str(record[key]) for key in found[0])))
    return rows
