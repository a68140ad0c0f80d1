"""Texts with entities as tagged tokens and words."""

from __future__ import annotations

from collections.abc import Iterator

from albert_tf.data.records import Record, WrongLine, lines_of
from albert_tf.data.tags import split_tag, tags_to_spans

# Characters from here on are written without spaces between words.
_FIRST_UNSPACED = "\u2e80"


def read_columns(content, separator=None, joiner=None) -> Iterator[Record]:
    """A token and its tag a line, an empty line between sentences."""
    sentences, rows = [], []
    for where, line in [*lines_of(content), ("the end", "")]:
        if line.strip() and not line.startswith("-DOCSTART-"):
            rows.append((where, *_cells(where, line, separator)))
        elif rows:
            sentences.append(rows)
            rows = []
    if joiner is None:
        joiner = _joiner([token for rows in sentences for _, token, _ in rows])
    for rows in sentences:
        yield _joined(rows, joiner)


def _cells(where, line, separator):
    cells = line.split(separator)
    if len(cells) == 1 and line[0].isspace():
        # The token is a space.
        cells = [line[0], *cells]
    if len(cells) < 2:
        raise WrongLine(
            where,
            f"{line!r} has one column. Expected a token and its tag, such as "
            f"'中 B-ORG', separated by {separator or 'white space'!r}.",
        )
    token, tag = cells[0], cells[-1].strip()
    try:
        split_tag(tag)
    except ValueError as error:
        raise WrongLine(where, error) from None
    return token or " ", tag


def _joiner(tokens):
    """Nothing between characters and words of Chinese, a space between others."""
    together = sum(len(x) == 1 or x[-1] >= _FIRST_UNSPACED for x in tokens)
    return "" if together > len(tokens) / 2 else " "


def _joined(rows, joiner):
    text, bounds = "", []
    for _, token, _ in rows:
        text += joiner if text else ""
        bounds.append((len(text), len(text) + len(token)))
        text += token
    spans = [
        (bounds[first][0], bounds[last - 1][1], label)
        for first, last, label in tags_to_spans(tag for _, _, tag in rows)
    ]
    return Record(rows[0][0], text, spans)


def read_slashes(content) -> Iterator[Record]:
    """Words with labels, a sentence a line: `中共中央/nt 致/o`."""
    for where, line in lines_of(content):
        text, spans = "", []
        for part in line.split():
            word, slash, label = part.rpartition("/")
            if not (word and label):
                raise WrongLine(
                    where, f"{part!r} is no word and label, such as '中共中央/nt'."
                )
            if label.upper() != "O":
                spans.append((len(text), len(text) + len(word), label))
            text += word
        if text:
            yield Record(where, text, spans)
