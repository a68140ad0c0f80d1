"""Lines of words and their tags, such as 中国/ns 政府/n, as in People's Daily."""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import NamedTuple

from albert_tf_lite.errors import AlbertError

# Brackets around the words of a longer name, [中国/ns 政府/n]nt.
_PAIRS = {"[": "]", "［": "］", "【": "】"}
_OPENING, _CLOSING = "".join(_PAIRS), "".join(_PAIRS.values())
_LABEL = rf"[^\s/{re.escape(_OPENING + _CLOSING)}]+"
# A closing bracket and its label: "]nt", "]/nt".
_CLOSE = rf"[{re.escape(_CLOSING)}]/?(?:{_LABEL})?"
_CLOSES = re.compile(_CLOSE)
# A word with its tag, if any, and the brackets that close after it.
_CLOSED = re.compile(rf"((?:.+?/{_LABEL})?)((?:{_CLOSE})+)")
_TAG_BEFORE_CLOSING = re.compile(rf"/{_LABEL}[{re.escape(_CLOSING)}]")
# "] nt", where no slash follows.
_SPACED_LABEL = re.compile(rf"([{re.escape(_CLOSING)}])\s+({_LABEL})(?=\s|$)")
# A word in brackets with one tag: "[注]/n".
_WORD_IN_BRACKETS = re.compile(
    rf"[{re.escape(_OPENING)}][^/]*[{re.escape(_CLOSING)}]/{_LABEL}"
)
# The number of a line of People's Daily.
_NUMBER = re.compile(r"\d{8}(-\d+){3}/m")
# The pronunciation after a character: 长{chang2}.
_PRONUNCIATION = re.compile(r"(?<=[\u2e80-\U0010ffff])\{[A-Za-z0-9üÜ:']+\}")


@dataclasses.dataclass
class SlashLine:
    """The words of a line and their tags.

    Attributes:
        tokens: list of (word, tag).
        entities: list of (start, end, label) in tokens, the outermost brackets.
    """

    tokens: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    entities: list[tuple[int, int, str]] = dataclasses.field(default_factory=list)


class _Opened(NamedTuple):
    """A bracket that is open, and the number of tokens before it."""

    bracket: str
    start: int


class SlashReader:
    """Reader of lines of words and tags, which counts what it leaves out."""

    def __init__(self) -> None:
        # By kind: the first example with its place, and how many there are.
        self._left_out: dict[str, tuple[str, int]] = {}

    def read(self, place: str, line: str) -> SlashLine:
        """Return the words of a line; raise if a part has another form."""
        line = self._without_number(place, _SPACED_LABEL.sub(r"\1\2", line))
        parsed = SlashLine()
        opened: list[_Opened] = []
        for part in line.split():
            while _opens(part):
                opened.append(_Opened(part[0], len(parsed.tokens)))
                part = part[1:]
            closed = _CLOSED.fullmatch(part) if opened else None
            word, closings = closed.groups() if closed else (part, "")
            if word:
                parsed.tokens.append(self._token(place, word))
            for closing in _CLOSES.findall(closings):
                self._close(place, closing, opened, parsed)
        if opened:
            raise AlbertError(
                f"{place}: a bracket {opened[0].bracket!r} is not closed."
            )
        return parsed

    def _without_number(self, place: str, line: str) -> str:
        """Return a line without the number that People's Daily has at its start."""
        first = line.split(maxsplit=1)[0] if line.strip() else ""
        if not _NUMBER.fullmatch(first):
            return line
        self._count("numbers of lines", place, first)
        return line.replace(first, "", 1)

    def _token(self, place: str, part: str) -> tuple[str, str]:
        word, _, tag = part.rpartition("/")
        if not (word and tag):
            raise AlbertError(f"{place}: {part!r} is not like '中共中央/nt'.")
        if _TAG_BEFORE_CLOSING.search(part):
            raise AlbertError(
                f"{place}: {part!r} closes a bracket that was not opened. Expected "
                "[中国/ns 政府/n]nt."
            )
        if mark := _PRONUNCIATION.search(word):
            self._count("marks of pronunciation", place, mark[0])
            word = _PRONUNCIATION.sub("", word)
        return word, tag

    def _close(
        self, place: str, closing: str, opened: list[_Opened], line: SlashLine
    ) -> None:
        """Close the last bracket; the outermost one is an entity."""
        label = closing[1:].removeprefix("/")
        if not opened or _PAIRS[opened[-1].bracket] != closing[0] or not label:
            raise AlbertError(
                f"{place}: {closing!r} does not close a bracket with a label. Expected "
                "[中国/ns 政府/n]nt."
            )
        start = opened.pop().start
        if opened:
            return
        words = "".join(word for word, _ in line.tokens[start:])
        if not words:
            raise AlbertError(f"{place}: the brackets before {label!r} are empty.")
        self._count("brackets", place, f"[{words}]{label}")
        line.entities.append((start, len(line.tokens), label))

    def _count(self, kind: str, place: str, example: str) -> None:
        first, count = self._left_out.get(kind, (f"{example!r} ({place})", 0))
        self._left_out[kind] = first, count + 1

    def warn(self) -> None:
        """Warn of what was left out or chosen."""
        for kind, (first, count) in self._left_out.items():
            effect = "are left out"
            if kind == "brackets":
                effect = (
                    "are one entity each, with the label after the bracket; the tags "
                    "of the words in them are not used. To use these, remove the "
                    "brackets and their labels"
                )
            warnings.warn(f"{count} {kind} such as {first} {effect}.", stacklevel=5)


def has_slashes(line: str) -> bool:
    """Return whether all parts of a line are words with a tag, or brackets."""
    parts = _SPACED_LABEL.sub(r"\1\2", line).split()
    untagged = [part for part in parts if "/" not in part[1:]]
    if len(untagged) == len(parts):
        return False
    if not any(_opens(part) for part in parts):
        return not untagged
    return all(part[0] in _OPENING + _CLOSING for part in untagged)


def _opens(part: str) -> bool:
    """Return whether a part begins with a bracket around words, not in a word."""
    if not part or part[0] not in _PAIRS:
        return False
    return part[1:2] != "/" and not _WORD_IN_BRACKETS.fullmatch(part)
