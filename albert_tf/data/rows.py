"""The cells of tsv, csv and JSON lines files."""

import csv
import json

from albert_tf.data.encodings import read_lines
from albert_tf_lite.errors import AlbertError

# Between the labels of a text that has several.
LABEL_SEPARATOR = "|"


def read_rows(path):
    """Two lists: the numbers of the lines, and their cells; the header included."""
    if path.suffix.lower() not in _READERS:
        raise AlbertError(
            f"{path} has an unknown ending. Known: {', '.join(_READERS)} "
            "(.json holds a JSON object a line)."
        )
    rows = _READERS[path.suffix.lower()](path, read_lines(path))
    if not rows:
        raise AlbertError(f"{path} is empty. Expected a label and a text a line.")
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise AlbertError(
                f"Line {number} of {path} has {len(row)} columns, the first line "
                f"has {width}: {row}"
            )
    return tuple(zip(*rows, strict=True))


def _read_tsv(path, lines):
    rows = enumerate(lines, start=1)
    return [(number, line.split("\t")) for number, line in rows if line.strip()]


def _read_csv(path, lines):
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise AlbertError(
            f"Line {reader.line_num} of {path} is not CSV: {error}."
        ) from error


def _read_jsonl(path, lines):
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise AlbertError(
                f"Line {number} of {path} is not JSON: {error}"
            ) from error
        if not isinstance(record, dict):
            raise AlbertError(
                f"Line {number} of {path} should be a JSON object such as "
                f'{{"label": "1", "text": "..."}}. Found: {line[:80]}'
            )
        header = rows[0][1] if rows else list(record)
        missing = [name for name in header if record.get(name) is None]
        if missing:
            raise AlbertError(f"Line {number} of {path} lacks {missing}: {line[:80]}")
        rows = rows or [(number, header)]
        rows.append((number, [_cell(record[name]) for name in header]))
    return rows


def _cell(value):
    """A list of labels as other files have them, in one cell."""
    is_list = isinstance(value, list)
    return LABEL_SEPARATOR.join(map(str, value)) if is_list else str(value)


_READERS = {
    ".tsv": _read_tsv,
    ".txt": _read_tsv,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".json": _read_jsonl,
}


def is_json_lines(path):
    """Whether the ending says that a file has a JSON object a line."""
    return _READERS[path.suffix.lower()] is _read_jsonl
