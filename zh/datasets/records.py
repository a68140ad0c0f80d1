"""The parts of records, and why a record is no example."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from albert_tf.data import find_answer


class Rejected(ValueError):
    """Why a record is no example, in words that count alike ones together."""


class Example(NamedTuple):
    """The parts of x, the y, and how many places were not where the record says."""

    x: tuple
    y: Any
    moved: int = 0


def lines_of(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The lines that are not blank, after what to call them."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield f"line {number}", line.removesuffix(b"\r")


def decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Rejected("not UTF-8") from None


def parsed(line: bytes) -> dict:
    """The object that a line of JSON is."""
    try:
        record = json.loads(decoded(line))
    except json.JSONDecodeError:
        raise Rejected("not JSON") from None
    return checked(record, dict, "the line")


_KINDS = {str: "text", list: "a list", dict: "an object", int: "a number"}


def checked(value: Any, kind: type, name: str) -> Any:
    """A value of a type; of a string, one that is not empty."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Rejected(f"{name} is not {_KINDS[kind]}")
    if kind is str and not value.strip():
        raise Rejected(f"{name} is empty")
    return value


def field(record: dict, names: str, kind: type = str) -> Any:
    """A field of a record, the first it has of several with `|` between them."""
    checked(record, dict, "the record")
    for name in names.split("|"):
        if record.get(name) is not None:
            return checked(record[name], kind, f"the field {name!r}")
    raise Rejected(f"no field {names.replace('|', ' or ')!r}")


def strings(values: Any, name: str) -> list[str]:
    """A list of strings."""
    return [checked(x, str, name) for x in checked(values, list, name)]


def placed(text: str, start: Any, part: str, name: str) -> tuple[int, int]:
    """Where a part is in a text, and 1 if that is not where `start` says.

    `start` is `None` where the data set does not say it.
    """
    found = find_answer(text, start if isinstance(start, int) else None, part)
    if found is None:
        raise Rejected(f"{name} is not in its text")
    return found, int(start not in (None, found))
