"""Write records as a table or as JSON lines."""

import collections
import csv
import itertools
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from albert_tf.data.reading import endings
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

    Without a suffix, as for `.tsv` and `.txt`, tabs separate the cells. Tabs and line
    breaks in a cell become spaces there, because these formats have no quotes.
    """
    with complete_file(path) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, records, source)
            return
        # Halves of surrogate pairs, which JSON can contain, become question marks.
        with temporary.open("w", -1, "utf-8", "replace", newline="") as file:
            if suffix == ".jsonl":
                for record in records():
                    line = json.dumps(record, ensure_ascii=False, default=str)
                    file.write(f"{line}\n")
                return
            names = list(dict.fromkeys(itertools.chain.from_iterable(records())))
            cells = ([record.get(name) for name in names] for record in records())
            rows: Iterable[list] = itertools.chain([names], cells)
            if suffix == ".csv":
                # Excel reads UTF-8 only with a byte order mark.
                file.write("\ufeff")
                style: Any = {"lineterminator": "\n", "quoting": csv.QUOTE_NONNUMERIC}
                csv.writer(file, **style).writerows(rows)
                return
            for row in rows:
                texts = ("" if x is None else str(x) for x in row)
                line = "\t".join(re.sub(r"[\t\r\n]", " ", x) for x in texts)
                file.write(f"{line}\n")


def _write_parquet(path, records, source):
    arrow, parquet = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    kinds = collections.defaultdict(set)
    for record in records():
        for name, value in record.items():
            is_long = isinstance(value, int) and value.bit_length() > 63
            kinds[name].add(str if is_long else type(value))
    types = {}
    if source and endings(source)[0] == ".parquet":
        types = {field.name: field.type for field in parquet.read_schema(source)}
    known = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    fields = {}
    for name, found in kinds.items():
        # Values of several types become strings: Parquet has one type per column.
        kind, *others = found - {type(None)} or {str}
        default = arrow.string() if others else known.get(kind, arrow.string())
        fields[name] = types.get(name, default)

    def value_of(name, value):
        if value is None or fields[name] != arrow.string():
            return value
        return str(value).encode("utf-8", "replace").decode()

    rows = ({k: value_of(k, x) for k, x in record.items()} for record in records())
    schema = arrow.schema(list(fields.items()))
    with parquet.ParquetWriter(path, schema) as writer:
        while group := list(itertools.islice(rows, _ROWS_PER_GROUP)):
            writer.write_table(arrow.Table.from_pylist(group, schema))
