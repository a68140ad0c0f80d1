"""Lines of text files, and the tokens of a vocabulary, which has one per line."""

import re

_LINE_END = re.compile("\r\n|\r|\n")
# White space at the ends of a row of a vocabulary, and between its columns.
BLANKS = " \t\r\n"


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text, without their ends, \n, \r\n or \r.

    `str.splitlines` also splits at U+2028, which is a token of the released
    vocabularies, and at other characters within a line.

    >>> split_lines("一\u2028二\r\n三\n")
    ['一\u2028二', '三']
    """
    lines = _LINE_END.split(text)
    # The end of the last line begins no other one.
    return lines if lines[-1] else lines[:-1]


def vocabulary_tokens(text: str) -> list[str]:
    """Return the tokens of a `vocab.txt`; the position of each is its id.

    A row may have a second column, which is ignored. Empty rows count, but for those at
    the end.
    """
    rows = [row.strip(BLANKS).replace("\t", " ") for row in split_lines(text)]
    tokens = [row.split(" ", 1)[0] for row in rows]
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens
