"""Lines of text of any length, in pieces that fit into memory."""

import functools
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Characters of a line that are read at a time.
PIECE = 2**16
# Where a long line is divided, by preference.
_ENDS = (("。", "！", "？", "!", "?", "…", ". "), ("；", ";", "，", ",", "、", " "))
_CLOSERS = re.compile("[”’」』）】》\"')\\]]*")
_BYTE_ORDER_MARK = "\ufeff"


class Piece(NamedTuple):
    """A line with its end, or a part of a long one."""

    text: str
    begins: bool  # The line begins with it.
    ends: bool  # The line ends with it.

    @property
    def is_whole(self) -> bool:
        return self.begins and self.ends

    @property
    def stripped(self) -> str:
        """The text without white space around it."""
        return stripped(self.text)


def stripped(text: str) -> str:
    """Return a line without white space around it, nor a byte order mark before it.

    Concatenated files may have several of these marks.
    """
    return text.removeprefix(_BYTE_ORDER_MARK).strip()


def read_pieces(text: io.TextIOBase, size: int = PIECE) -> Iterator[Piece]:
    """Yield the lines of a text, those of more than `size` characters in pieces."""
    begins, rest = True, ""
    for characters in iter(functools.partial(text.readline, size), ""):
        rest += characters
        if rest.endswith("\n"):
            yield Piece(rest, begins, True)
            begins, rest = True, ""
        elif len(characters) == size:
            end = _last_end(rest)
            yield Piece(rest[:end], begins, False)
            begins, rest = False, rest[end:]
    if rest or not begins:
        yield Piece(rest, begins, True)


def joined_lines(pieces: Iterable[Piece]) -> Iterator[str]:
    """Yield the stripped lines of which these are the pieces."""
    texts: list[str] = []
    for piece in pieces:
        texts.append(piece.text)
        if piece.ends:
            line = "".join(texts)
            texts.clear()
            yield stripped(line)


def short_lines(text: str, size: int = PIECE) -> Iterator[str]:
    """Yield the stripped lines of a text, those of `size` characters in pieces."""
    start = 0
    while start < len(text):
        characters = text[start : start + size]
        line, end_of_line, _ = characters.partition("\n")
        if not end_of_line and len(characters) == size:
            line = characters[: _last_end(characters)]
        yield line.strip()
        start += len(line) + len(end_of_line)


def json_text(line: str, field: str) -> str | None:
    """Return the text of a JSON object; `None` without one."""
    try:
        # JSON can contain halves of surrogate pairs, which UTF-8 cannot.
        return json.loads(line)[field].encode("utf-8", "ignore").decode()
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None


def _last_end(text: str) -> int:
    """Return where the last sentence of a text ends, or else its last part."""
    for marks in _ENDS:
        places = [(text.rfind(mark), len(mark)) for mark in marks]
        place, length = max(places)
        if place >= 0:
            closers = _CLOSERS.match(text, place + length)
            return closers.end() if closers else place + length
    return len(text)
