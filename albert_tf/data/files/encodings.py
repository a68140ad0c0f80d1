"""Find the encoding of a text file: UTF-8, or the likeliest one of East Asia."""

from __future__ import annotations

import codecs
import importlib.resources
import re
from collections.abc import Container
from typing import NamedTuple

# The 600 commonest Chinese characters, the first of examples/albert_micro_zh/vocab.txt,
# with their traditional forms and punctuation, and the 256 commonest Korean syllables.
_COMMON = importlib.resources.files("albert_tf.data.files") / "common_characters.txt"
_CHINESE, _KOREAN = map(frozenset, _COMMON.read_text("utf-8").split("\n\n"))
_JAPANESE = _CHINESE.union(map(chr, range(0x3041, 0x30FF)))

# The characters that speak for an encoding. cp950, cp932 and cp949 are Big5, Shift JIS
# and EUC-KR as Windows writes them.
_CANDIDATES = {
    **dict.fromkeys(("gb18030", "cp950", "big5hkscs"), _CHINESE),
    **dict.fromkeys(("cp932", "euc_jp"), _JAPANESE),
    "cp949": _KOREAN,
    **dict.fromkeys(("utf-16-le", "utf-16-be"), _JAPANESE | _KOREAN),
}
# UTF-16 without a mark, which makes characters of any bytes, and EUC of Japan are rare.
_PENALTY = {"utf-16-le": 0.2, "utf-16-be": 0.2, "euc_jp": 0.1}
_PRIVATE = frozenset(map(chr, range(0xE000, 0xF900)))
NAMES = {
    "cp950": "big5 (cp950)",
    "cp932": "shift_jis (cp932)",
    "cp949": "euc_kr (cp949)",
}
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    # Before those of UTF-16, with which they begin.
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
}
# The number of characters that tell encodings apart, and the scores that do not.
_SAMPLE, _LEAST, _MARGIN = 20_000, 0.1, 0.15


class Guess(NamedTuple):
    """The encoding of a text, `None` if none fits, and another that fits as well."""

    encoding: str | None
    other: str | None = None


def guess_encoding(data: bytes) -> Guess:
    """Return the encoding of the start of a text.

    It is UTF-8 if half of the lines are: then the other ones are damaged. Else it is
    the one in which the largest share of the characters is common.
    """
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            return Guess(name)
    if wide := _encoding_of_wide_ascii(data):
        return Guess(wide)
    if b"\x1b$" in data and try_decode(data, "iso2022_jp"):
        return Guess("iso2022_jp")
    is_utf8 = try_decode(data, "utf-8") is not None
    if re.search(rb"[\x01-\x08\x0e-\x1f]", data):
        for name in ("utf-16-le", "utf-16-be"):
            if _score(try_decode(data, name), name) > 0.3:
                return Guess(name, "utf-8" if is_utf8 else None)
    if is_utf8:
        return Guess("utf-8")
    return _guess_beside_utf8(data)


def _encoding_of_wide_ascii(data: bytes) -> str | None:
    """Return UTF-16 or UTF-32 if their zeros are beside the characters of ASCII."""
    head = data[:4000]
    # The bytes of "A", and which of them are 0:
    # utf-16-le  41 00        second and fourth of four
    # utf-16-be  00 41        first and third
    # utf-32-le  41 00 00 00  second to fourth
    # utf-32-be  00 00 00 41  first to third
    first, second, third, fourth = (head[place::4].count(0) for place in range(4))
    if 25 * (first + second + third + fourth) <= len(head):
        return None
    order = "be" if first + third > second + fourth else "le"
    # In UTF-32, two neighbours are 0 nearly everywhere, a quarter of the bytes each.
    neighbours = max(min(first, second), min(third, fourth))
    return f"utf-32-{order}" if neighbours > len(head) // 5 else f"utf-16-{order}"


def _guess_beside_utf8(data: bytes) -> Guess:
    """Return the encoding of a text that is not whole in UTF-8."""
    lines = [line for line in re.split(b"[\r\n]", data) if not line.isascii()]
    decoded = [try_decode(line, "utf-8") for line in lines]
    valid = [text for text in decoded if text is not None]
    if 2 * len(valid) >= len(lines):
        return Guess("utf-8")
    if any(_share(text, _CHINESE) > 0.5 and len(text) > 1 for text in valid):
        return Guess(None, "utf-8")
    scores = {name: _score(try_decode(data, name), name) for name in _CANDIDATES}
    if scores["cp950"] >= 0:
        # This superset counts only where big5 cannot decode.
        del scores["big5hkscs"]
    other, best = sorted(scores, key=scores.__getitem__)[-2:]
    # Few characters tell less.
    margin = _MARGIN + 2 / max(sum(map(len, lines)), 1)
    is_close = scores[other] > scores[best] - margin
    return Guess(best if scores[best] >= _LEAST else None, other if is_close else None)


def try_decode(data: bytes, encoding: str) -> str | None:
    """Return the text of bytes whose last character may be incomplete, or `None`."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return None


def _score(text: str | None, encoding: str) -> float:
    if text is None:
        return -9.0
    score = _share(text, _CANDIDATES[encoding]) - 5 * _share(text, _PRIVATE)
    return score - _PENALTY.get(encoding, 0)


def _share(text: str, characters: Container[str]) -> float:
    """Return the share of some characters among those that are not ASCII."""
    others = [x for x in text[: 5 * _SAMPLE] if not x.isascii()][:_SAMPLE]
    return sum(x in characters for x in others) / max(len(others), 1)
