"""One row of a table."""

from __future__ import annotations

from typing import Any, NamedTuple


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        place: string such as "Line 3 of a.tsv".
        cells: list of strings; empty for an object.
        record: dict, the object of JSON or the row of a Parquet file, or `None`.
    """

    place: str
    cells: list[str]
    record: dict[str, Any] | None = None
