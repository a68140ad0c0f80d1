"""Write records as a table or as JSON lines."""

import csv
import itertools
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from albert_tf.data.files.compression import endings
from albert_tf.extras import import_extra
from albert_tf.files import complete_file
from albert_tf_lite.errors import AlbertError

# Parquet is written in groups.
_ROWS_PER_GROUP = 20_000


def check_writable(path: str | os.PathLike, as_json: bool = False) -> str:
    """Return the suffix of the format to write; raise if it cannot be written."""
    suffix = pathlib.Path(path).suffix.lower()
    if suffix == ".parquet" and not as_json:
        import_extra("pyarrow.parquet")
    elif suffix not in ("", ".csv", ".json", ".jsonl", ".tsv", ".txt", ".parquet"):
        raise AlbertError(
            f"{path} has the suffix of no known format. Choose .csv, .jsonl, .parquet "
            "or .tsv."
        )
    return ".jsonl" if as_json or suffix == ".json" else suffix


def write_records(
    path: str | os.PathLike,
    records: Callable[[], Iterator[dict[str, Any]]],
    suffix: str,
    source: str | os.PathLike | None = None,
) -> None:
    """Write one record per dict, in the format of a suffix.

    `records` is called twice where the first record may lack columns of later ones.
    If `source` and the new file are Parquet, its columns keep their types.

    Tabs separate the cells of `.tsv`, `.txt` and files without a suffix. Tabs and line
    breaks in a cell become spaces there, because these formats have no quotes.
    """
    with complete_file(path) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, records, source)
            return
        # Halves of surrogate pairs, which JSON can contain, become question marks.
        with temporary.open("w", -1, "utf-8", "replace", newline="") as file:
            if suffix == ".jsonl":
                _write_json(file, records())
            else:
                _write_cells(file, records, suffix)


def _write_json(file: TextIO, records: Iterable[dict[str, Any]]) -> None:
    for record in records:
        line = json.dumps(record, ensure_ascii=False, default=str)
        file.write(f"{line}\n")


def _write_cells(
    file: TextIO, records: Callable[[], Iterator[dict[str, Any]]], suffix: str
) -> None:
    """Write a table with a column for each name that a record has."""
    # A dict keeps the order in which the names occur first.
    ordered = dict.fromkeys(name for record in records() for name in record)
    names = list(ordered)
    rows = ([record.get(name) for name in names] for record in records())
    table: Iterable[list] = itertools.chain([names], rows)
    if suffix == ".csv":
        # Excel reads UTF-8 only with a byte order mark.
        file.write("\ufeff")
        style: Any = {"lineterminator": "\n", "quoting": csv.QUOTE_NONNUMERIC}
        csv.writer(file, **style).writerows(table)
        return
    for row in table:
        cells = [_without_breaks(value) for value in row]
        file.write("\t".join(cells) + "\n")


def _without_breaks(value: object) -> str:
    """Return a cell without tabs and line breaks; "" for `None`."""
    return "" if value is None else re.sub(r"[\t\r\n]", " ", str(value))


def _write_parquet(
    path: pathlib.Path,
    records: Callable[[], Iterator[dict[str, Any]]],
    source: str | os.PathLike | None,
) -> None:
    arrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    types = _column_types(records())
    if source and endings(source)[0] == ".parquet":
        for field in parquet.read_schema(source):
            if field.name in types:
                types[field.name] = field.type

    def converted(record: dict[str, Any]) -> dict[str, Any]:
        return {
            name: _as_string(value) if types[name] == arrow.string() else value
            for name, value in record.items()
        }

    rows = map(converted, records())
    schema = arrow.schema(list(types.items()))
    with parquet.ParquetWriter(path, schema) as writer:
        while group := list(itertools.islice(rows, _ROWS_PER_GROUP)):
            writer.write_table(arrow.Table.from_pylist(group, schema))


def _column_types(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the Arrow type of each column; a string for values of several types.

    Parquet has one type per column.
    """
    arrow = import_extra("pyarrow")
    kinds: dict[str, set[type]] = {}
    for record in records:
        for name, value in record.items():
            is_long = isinstance(value, int) and value.bit_length() > 63
            kind = str if is_long else type(value)
            kinds.setdefault(name, set()).add(kind)
    known = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    types = {}
    for name, values in kinds.items():
        values.discard(type(None))
        is_known = len(values) == 1 and values <= known.keys()
        types[name] = known[values.pop()] if is_known else arrow.string()
    return types


def _as_string(value: object) -> str | None:
    """Return a value that is encoded in UTF-8; halves of surrogate pairs become "?"."""
    if value is None:
        return None
    return str(value).encode("utf-8", "replace").decode()
