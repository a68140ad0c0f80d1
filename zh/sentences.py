"""Splitting Chinese text, with English in it, into sentences."""

import re

# These always end a sentence. A semicolon does not, because in Chinese it joins clauses
# of one sentence, like a longer comma.
_FULL_MARKS = "。！？｡‼⁇⁈⁉"
# These may be part of a word, an address or a pause: `Yahoo!`, `?id=1`, 我…我.
_OTHER_MARKS = "!?.…‥⋯"
_QUOTES = "\"'"
_CLOSERS = "”’」』﹂﹄）】》〉〕］｝〗〙〛»›)]}＂＇〞"
_OPENERS = "“‘「『﹁﹃（【《〈〔［｛〖〘〚«‹([{〝"
_BEGINS = _OPENERS + _QUOTES
# A sentence continues if these follow a quotation or a pause: 『鸟！』，他说.
_CONTINUES = "，、；：,;:"

_MARK = re.compile(
    # The marks in a title are part of it.
    r"(?P<title>《[^《》\n]{1,60}》|〈[^〈〉\n]{1,60}〉)"
    # A single dot counts only before white space, which excludes 3.14 and a.com.
    rf"|(?:[{_FULL_MARKS}!?…‥⋯\n\r]|\.(?=[.\s]|[{re.escape(_CLOSERS + _QUOTES)}]+\s))"
    # More marks and closing quotes. After white space a quote would be an opening one,
    # and dots would begin a sentence.
    rf"(?:[{re.escape(_FULL_MARKS + _OTHER_MARKS + _CLOSERS + _QUOTES)}]+"
    rf"|\s+(?=[{re.escape(_FULL_MARKS + '!?' + _CLOSERS)}]))*\s*"
)
_FULL_MARK = re.compile(f"[{_FULL_MARKS}]")
_PAIRED_QUOTES = re.compile(r'"([^"\n]*)"')

# Followed by a dot that ends no sentence. `No.` and `etc.` may well end one.
_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Mme|Messrs|Dr|Prof|Sr|Jr|St|Mt"
    "|Gen|Col|Maj|Capt|Lt|Sgt|Adm|Rev|Hon|Gov|Sen"
    r"|Rep|Pres|Ph\.D|vs|cf|al|viz|Fig|Vol|Op"
)
# Before the dot: one of these, initials (J., U.S., e.g.), or the number of an item.
_NO_END = re.compile(
    rf"(?<![A-Za-z'’])(?:{_ABBREVIATIONS}"
    r"|(?:[A-Za-z]\.)*[A-Za-z])$"
)
_ITEM_NUMBER = re.compile(r"[\s(（]{0,4}[0-9]{1,4}$")


def split_sentences(text: str) -> list[str]:
    """Split text into sentences.

    A sentence ends

    - at 。！？ and at `!` `?`, with further marks, closing quotes and brackets: 他说：
      “你好吗？”她说：“好。” are two. Not if a comma, colon or semicolon follows,
      nor within a title in 《》. After `!` and `?` not if a small letter follows,
      or ASCII without white space (`?id=1`);
    - at …… and `...` likewise, but not where a sentence begins with them, nor
      where the character before them comes again after them (我……我不知道);
    - at a single `.` before white space and a capital letter, a character without
      case such as Chinese ones, or an opening quote or bracket; not after
      abbreviations (`Mr.`), initials (`U.S.`) and the number of an item (`1. `);
    - at a line break.

    It does not end at ；. White space after a sentence belongs to it. A quotation of
    several sentences is split; straight double quotes close what they opened in the
    same line.

    Args:
        text: string.

    Returns:
        A list of non-empty strings that joined are the text. Only the first may begin
        with an end mark or a closing quote.

    Example:
    ```python
    zh.split_sentences("他说：“好吗？！”她说：“好……”")
    # ["他说：“好吗？！”", "她说：“好……”"]
    ```
    """
    # Replace straight quotes by pairs of the same length, to know which ones close.
    marked = _PAIRED_QUOTES.sub(r"“\1”", text)
    sentences, start = [], 0
    for match in _MARK.finditer(marked):
        if _is_end(marked, start, match):
            sentences.append(text[start : match.end()])
            start = match.end()
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def _is_end(text, start, match):
    """Return True if the match ends the sentence that begins at `start`."""
    if match["title"]:
        return False
    marks = match.group()
    following = text[match.end() : match.end() + 1]
    if not following or "\n" in marks or "\r" in marks:
        return True
    if following in _CONTINUES:
        return False
    if _FULL_MARK.search(marks):
        return True
    if marks[0] == "." and marks[1] != ".":
        return _is_full_stop(text, start, match.start(), following)
    # Within a word or an address, or before more dots.
    inside = marks[-1] in "!?." and following.isascii()
    if inside or following.islower() or following in _OTHER_MARKS:
        return False
    return "!" in marks or "?" in marks or _is_last(text, start, match, following)


def _is_full_stop(text, start, dot, following):
    begins = following.isalpha() and not following.islower()
    if not begins and following not in _BEGINS:
        return False
    # The longest abbreviation has fewer characters.
    if _NO_END.search(text, max(start, dot - 8), dot):
        return False
    return not _ITEM_NUMBER.match(text, start, dot)


def _is_last(text, start, match, following):
    """Return True if an ellipsis ends a sentence, not begins it or marks a pause."""
    if match.start() == start:
        return False
    before = text[match.start() - 1]
    return before not in _BEGINS and before != following
