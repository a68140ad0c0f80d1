"""The rows of tables, of any format; raises the limit of the csv module to any cell."""

from __future__ import annotations

import contextlib
import csv
import itertools
import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

from albert_tf.data.headers import HEADER_ROWS, header_index
from albert_tf.data.reading import (
    DOCUMENT_TAG,
    JSON_ENDINGS,
    endings,
    is_json,
    read_json,
    stream_lines,
)
from albert_tf.data.workbooks import sheet_rows
from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_start

# The first lines determine format, separator and quotes.
HEAD_LINES = 1000
# Excel reads such a first line.
_NAMED_DELIMITER = re.compile(r'\s*"?sep=(.)"?\s*')


def read_rows(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the place and the cells, or the place and the dict, of each row of a file.

    The content decides on the format, not only the suffix. The header is a row.

    Args:
        path: path of a file.
        encoding: optional string. By default that of its first megabyte.
        sheet: optional string, the name of a sheet, as for `sheet_rows`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file holds no table. Names the line.
    """
    kind, suffix = detect_format(path), endings(path)[0]
    if kind != suffix and kind in (".xlsx", ".parquet"):
        warnings.warn(f"{path} is a {kind} file. Read as such.", stacklevel=2)
    if kind == ".xlsx":
        return sheet_rows(path, sheet)
    if sheet is not None:
        check_sheets(path)
    if kind == ".parquet":
        return _parquet_rows(path)
    return _text_rows(path, kind, encoding)


def check_sheets(path: str | os.PathLike) -> None:
    """Raise if a file is not a workbook, whose sheets have names."""
    if os.path.isdir(path) or detect_format(path) != ".xlsx":
        raise AlbertError(f"{path} is not a workbook of sheets. Leave out `sheet=`.")


def detect_format(path: str | os.PathLike) -> str:
    """Return the suffix of the format of a table, by its content if it is binary."""
    with open(path, "rb") as file:
        start = file.peek(4)
    check_start(path, start)
    if start.startswith(b"PAR1"):
        return ".parquet"
    if start.startswith(b"PK\x03\x04"):
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            if "xl/workbook.xml" in archive.namelist():
                return ".xlsx"
    return endings(path)[0].replace(".xlsx", "")


# === Text ===


def _text_rows(path, kind, encoding):
    lines = stream_lines(path, encoding, keepends=True)
    head = list(itertools.islice(lines, HEAD_LINES))
    is_whole = len(head) < HEAD_LINES
    lines = itertools.chain(head, lines)
    first = next((line for line in head if line.strip()), "")
    if kind in JSON_ENDINGS or is_json(first):
        if kind in (".csv", ".tsv", ".txt"):
            warnings.warn(f"{path} looks like JSON. Read as such.", stacklevel=3)
        return _objects(path, lines)
    if DOCUMENT_TAG.fullmatch(first):
        raise AlbertError(
            f"{path} looks like the output of WikiExtractor, not like a table. "
            "`albert-tf pretrain-data` reads it."
        )
    if named := _NAMED_DELIMITER.fullmatch(first):
        lines = itertools.chain(["\n"], itertools.islice(lines, 1, None))
        return _cells(path, lines, named[1], csv.QUOTE_MINIMAL)
    return _cells(path, lines, *_detect_style(path, kind, head, is_whole))


def _detect_style(path, kind, head, is_whole):
    """Return the separator of the cells of a file, and how they are quoted."""
    if kind != ".csv":
        if not _is_quoted("".join(head), is_whole):
            return "\t", csv.QUOTE_NONE
        warnings.warn(f"{path} has quoted cells. Read as such.", stacklevel=4)
        return "\t", csv.QUOTE_MINIMAL
    fitting = [x for x in ",;\t|" if _separates(x, head, is_whole)]
    delimiter = fitting[0] if fitting else ","
    others = f", and not by {fitting[1]!r}" if len(fitting) > 1 else ", not by commas"
    if len(fitting) > 1 or delimiter != ",":
        message = f"{path} is separated by {delimiter!r}{others}. Read as such."
        warnings.warn(message, stacklevel=4)
    return delimiter, csv.QUOTE_MINIMAL


def _separates(delimiter, head, is_whole):
    """Return whether nearly all rows have as many cells as the first, two or more.

    Rows above a header do not count.
    """
    rows = []
    try:
        for row in csv.reader(head, strict=True, delimiter=delimiter):
            # A blank line has none.
            rows += [row] if row else []
    except csv.Error as error:
        if is_whole or "unexpected end" not in str(error):
            return False
    first = header_index(rows[:HEADER_ROWS]) or 0
    widths = [len(row) for row in rows[first:]]
    width = widths[0] if widths else 0
    return width > 1 and widths.count(width) >= 0.9 * len(widths)


def _is_quoted(text, is_whole):
    """Return whether quotes belong to the form of a table and not to its texts.

    Then they surround cells that have tabs, line ends or doubled quotes in them, or all
    cells but numbers.
    """
    text = re.sub("\r\n?", "\n", text)
    ends = ("",) if is_whole else ("", '"')
    if '"' not in text or not any(_QUOTED.fullmatch(text + x) for x in ends):
        return False
    cells = _QUOTED_CELL.findall(text)
    are_needed = any(re.search('[\t\n]|""', cell) for cell in cells)
    return are_needed or any(_ALL_QUOTED.fullmatch(text + x) for x in ends)


def _table_pattern(plain):
    cell = f'(?:"(?:[^"]|"")*"|{plain})'
    return re.compile(f"{cell}(?:[\t\n]{cell})*")


_QUOTED, _ALL_QUOTED = map(_table_pattern, (r'[^"\t\n]*', r"[-+.\dE]*"))
_QUOTED_CELL = re.compile(r'(?:^|(?<=[\t\n]))"((?:[^"]|"")*)"(?=[\t\n]|$)')


def _cells(path, lines, delimiter, quoting):
    # By default the module refuses cells of more than 131,072 characters.
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(lines, strict=True, delimiter=delimiter, quoting=quoting)
    number = 1
    try:
        for row in reader:
            is_blank = not row or (len(row) == 1 and row[0].isspace())
            if not is_blank:
                yield f"Line {number} of {path}", row
            number = reader.line_num + 1
    except csv.Error as error:
        raise AlbertError(f"Line {number} of {path} is not CSV: {error}.") from error


def _objects(path, lines):
    for place, record in read_json(path, lines=lines):
        if not isinstance(record, dict):
            raise AlbertError(
                f'{place} should be a JSON object such as {{"label": "1", "text": '
                f'"..."}}. Found: {str(record)[:80]}'
            )
        yield place, record


# === Parquet ===


def _parquet_rows(path):
    arrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            batches = file.iter_batches(batch_size=HEAD_LINES)
            rows = (row for batch in batches for row in batch.to_pylist())
            for i, row in enumerate(rows, 1):
                yield f"Row {i} of {path}", row
    except arrow.ArrowException as error:
        raise AlbertError(f"{path} cannot be read as Parquet: {error}.") from error
