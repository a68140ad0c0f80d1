"""What readers of tagged texts give, and say of what they cannot read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Record:
    """A text with entities, and where it stands, such as "Line 3"."""

    where: str
    text: str
    spans: list


class WrongLine(ValueError):
    """What is wrong, and where; the reader of the file adds its name."""

    def __init__(self, where, message):
        super().__init__(str(message))
        self.where = where


def lines_of(content: str) -> Iterator[tuple[str, str]]:
    """Names and lines; not splitlines, which also cuts within texts."""
    for number, line in enumerate(content.split("\n"), start=1):
        yield f"Line {number}", line.removesuffix("\r")
