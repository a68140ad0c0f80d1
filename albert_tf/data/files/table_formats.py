"""Read the rows of tables of any format.

The limit of the csv module is raised, so that cells have any length.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import os
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator

from albert_tf.data.files.cell_separators import CellStyle, detect_style
from albert_tf.data.files.compression import endings
from albert_tf.data.files.json_values import JSON_ENDINGS, is_json, read_json
from albert_tf.data.files.row import Row
from albert_tf.data.files.text_lines import DOCUMENT_TAG, stream_lines
from albert_tf.data.files.workbooks import sheet_rows
from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError, first_line
from albert_tf_lite.pointers import check_start

# The first lines determine format, separator and quotes.
HEAD_LINES = 1000
# Excel reads such a first line.
_NAMED_SEPARATOR = re.compile(r'\s*"?sep=(.)"?\s*')


def read_rows(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> Iterator[Row]:
    """Yield the rows of a file.

    The content decides on the format, not only the suffix. The header is a row.

    Args:
        path: path of a file.
        encoding: optional string. By default that of its first megabyte.
        sheet: optional string, the name of a sheet of a workbook; see `sheet_rows`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file holds no table. Names the line.
    """
    kind = detect_format(path)
    suffix = endings(path)[0]
    if kind != suffix and kind in (".xlsx", ".parquet"):
        warnings.warn(f"{path} is a {kind} file. Read as such.", stacklevel=2)
    if kind == ".xlsx":
        return itertools.starmap(Row, sheet_rows(path, sheet))
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


def _text_rows(
    path: str | os.PathLike, kind: str, encoding: str | None
) -> Iterator[Row]:
    rest = stream_lines(path, encoding, keepends=True)
    head = list(itertools.islice(rest, HEAD_LINES))
    is_whole = len(head) < HEAD_LINES
    lines = itertools.chain(head, rest)
    first = next((line for line in head if line.strip()), "")
    if kind in JSON_ENDINGS or is_json(first):
        if kind in (".csv", ".tsv", ".txt"):
            warnings.warn(f"{path} looks like JSON. Read as such.", stacklevel=3)
        return _object_rows(path, lines)
    if DOCUMENT_TAG.fullmatch(first):
        raise AlbertError(
            f"{path} looks like the output of WikiExtractor, not like a table. "
            "`albert-tf pretrain-data` reads it."
        )
    if named := _NAMED_SEPARATOR.fullmatch(first):
        lines = itertools.chain(["\n"], itertools.islice(lines, 1, None))
        return _cell_rows(path, lines, CellStyle(named[1], csv.QUOTE_MINIMAL))
    return _cell_rows(path, lines, detect_style(path, kind, head, is_whole))


def _cell_rows(
    path: str | os.PathLike, lines: Iterable[str], style: CellStyle
) -> Iterator[Row]:
    # By default the module refuses cells of more than 131,072 characters.
    csv.field_size_limit(2**31 - 1)
    separator, quoting = style
    reader = csv.reader(lines, strict=True, delimiter=separator, quoting=quoting)
    number = 1
    try:
        for cells in reader:
            is_blank = not cells or (len(cells) == 1 and cells[0].isspace())
            if not is_blank:
                yield Row(f"Line {number} of {path}", cells)
            number = reader.line_num + 1
    except csv.Error as error:
        raise AlbertError(f"Line {number} of {path} is not CSV: {error}.") from error


def _object_rows(path: str | os.PathLike, lines: Iterable[str]) -> Iterator[Row]:
    for place, record in read_json(path, lines=lines):
        if not isinstance(record, dict):
            raise AlbertError(
                f'{place} should be a JSON object such as {{"label": "1", "text": '
                f'"..."}}. Found: {str(record)[:80]!r}'
            )
        yield Row(place, [], record)


def _parquet_rows(path: str | os.PathLike) -> Iterator[Row]:
    parquet = import_extra("pyarrow.parquet")
    number = 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            for batch in file.iter_batches(batch_size=HEAD_LINES):
                for record in batch.to_pylist():
                    number += 1
                    yield Row(f"Row {number} of {path}", [], record)
    # The errors of pyarrow have no common class.
    except Exception as error:
        raise AlbertError(
            f"{path} cannot be read as Parquet: {first_line(error)}. Write it again."
        ) from error
