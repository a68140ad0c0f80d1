"""Texts with entities: columns of tags, lines of words with tags, JSON, tables."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from albert_tf.data.files.annotation_tools import label_value
from albert_tf.data.files.compression import endings
from albert_tf.data.files.json_values import is_json
from albert_tf.data.files.tables import Table, read_table
from albert_tf.data.files.text_lines import stream_lines
from albert_tf.data.labels.cleaning import clean_spans
from albert_tf.data.labels.tag_spellings import PIECE, is_mark, is_tag, read_tags
from albert_tf.data.labels.text_spans import Span, check_spans
from albert_tf.data.sets.words_with_tags import SlashReader, has_slashes
from albert_tf_lite.errors import AlbertError, first_line
from albert_tf_lite.tagging import OUTSIDE, split_tag, tags_to_spans

# Characters from here on are written without spaces between words.
_FIRST_UNSPACED = "\u2e80"
# The lines that decide whether a file has tags.
_HEAD_LINES = 50
# Files of these suffixes are tables. JSON is one, too.
_TABLES = (".csv", ".xlsx", ".parquet")


@dataclasses.dataclass(frozen=True)
class TaggedTexts:
    """Texts and their entities.

    Attributes:
        x: list of strings.
        spans: list of (start, end, label) per text, in characters.
    """

    x: list[str]
    spans: list[list[Span]]

    @property
    def labels(self) -> list[str]:
        """Return the distinct labels, sorted."""
        return sorted({label for row in self.spans for _, _, label in row})


def read_tagged_texts(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> TaggedTexts:
    """Read texts with entities.

    The form is found from the content.

    | form | content of the file |
    |---|---|
    | columns | one token and its tag per line, an empty line between sentences, as in CoNLL, MSRA and People's Daily. The tags are BIO, BIOES, BMES, BILOU or IO; with a warning `PER-B`, `b-per`, B, M, E, S of words, or parts of speech |
    | slashes | one sentence per line, `中共中央/nt 致/o`, or with any tags of columns; with a warning, `[中国/ns 政府/n]nt` is one entity and numbers of lines are left out |
    | CLUENER | JSON, `{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}` |
    | doccano | JSON, `{"text": "...", "label": [[0, 2, "PER"]]}`, or with `entities` |
    | Label Studio | JSON, JSON-MIN or CSV |

    Words are joined without spaces if most are Chinese or single characters,
    else with a space.

    Args:
        path: path of a file. JSON is a list or has one object per line.
        encoding, sheet: optional strings, as in `read_labelled_texts`.

    Returns:
        A `TaggedTexts`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is empty, has another encoding or another form, or
            spans overlap. Names the line.

    Example:
    ```python
    train = albert_tf.data.read_tagged_texts("train.txt")
    tagger.fit(train.x, train.spans)
    ```
    """  # noqa: E501 (a table)
    texts, spans = [], []
    for place, text, values in read_entities(path, encoding, sheet):
        with _naming(place):
            spans.append(check_spans(values, len(text)))
        texts.append(text)
    return TaggedTexts(texts, clean_spans(spans))


class Entities(NamedTuple):
    """A text with its entities, which are not checked yet.

    Attributes:
        place: string such as "Line 3 of a.txt".
        text: string.
        spans: list of spans as in the file.
    """

    place: str
    text: str
    spans: list


def read_entities(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> Iterator[Entities]:
    """Yield the texts of a file with their entities, as `read_tagged_texts`."""
    if endings(path)[0] in _TABLES:
        return _read_table(read_table(path, encoding, sheet))
    lines = [
        _Line(f"Line {number} of {path}", text)
        for number, text in enumerate(stream_lines(path, encoding), start=1)
    ]
    first = next((line.text.strip() for line in lines if line.text.strip()), "")
    if not first:
        raise AlbertError(f"{path} is empty. Expected texts with entities.")
    if is_json(first):
        return _read_table(read_table(path, encoding, sheet))
    if has_slashes(first):
        return _read_slashes(lines)
    return _read_columns(lines)


def has_tags(path: str | os.PathLike, encoding: str | None = None) -> bool:
    """Return whether the first lines of a file have tags, not texts or a table."""
    if endings(path)[0] in _TABLES:
        return False
    head = itertools.islice(stream_lines(path, encoding), _HEAD_LINES)
    lines = [line for line in head if line.strip() and not line.startswith("-DOC")]
    if not lines or is_json(lines[0]):
        return False
    if all(map(has_slashes, lines)):
        return True
    words = [line.split() for line in lines]
    width = len(words[0])
    if width == 1 or any(len(line_words) != width for line_words in words):
        return False
    names = {line_words[-1] for line_words in words}
    tags = read_tags(names, may_be_plain=False).tags
    # Parts of speech are few.
    return 3 * len(names) <= len(words) or all(map(is_tag, tags.values()))


@contextlib.contextmanager
def _naming(place: str) -> Iterator[None]:
    """Name the place in errors about its content."""
    try:
        yield
    except AlbertError as error:
        raise AlbertError(f"{place}: {error}") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise AlbertError(
            f"{place} has a span of another form: {first_line(error)}"
        ) from None


# === Tokens with tags ===


class _Line(NamedTuple):
    """A line of a file, and its place."""

    place: str
    text: str


class _Token(NamedTuple):
    """A word or a character of a file, and its tag."""

    place: str
    text: str
    tag: str


def _read_columns(lines: Iterable[_Line]) -> Iterator[Entities]:
    sentences: list[list[_Token]] = [[]]
    for line in lines:
        if not line.text.strip() or line.text.startswith("-DOCSTART-"):
            sentences.append([])
        else:
            sentences[-1].append(_token_of(line))
    tokens = list(itertools.chain(*sentences))
    tags = _read_all_tags(tokens)
    marks = _find_marks(tokens, tags)
    joiner = _joiner([token for token in tokens if token.text not in marks])
    for sentence in sentences:
        kept = [token for token in sentence if token.text not in marks]
        if kept:
            spans = tags_to_spans(tags[token.tag] for token in kept)
            yield _joined(kept, spans, joiner)


def _token_of(line: _Line) -> _Token:
    """Return the first and the last column of a line; white space may be a token."""
    token, *others = line.text.split()
    if not others and line.text[0].isspace():
        token, others = line.text[0], [token]
    return _Token(line.place, token, others[-1] if others else "")


def _read_slashes(lines: Iterable[_Line]) -> Iterator[Entities]:
    reader = SlashReader()
    sentences = []
    for place, text in lines:
        parsed = reader.read(place, text)
        tokens = [_Token(place, word, tag) for word, tag in parsed.tokens]
        sentences.append((tokens, parsed.entities))
    reader.warn()
    all_tokens = [token for tokens, _ in sentences for token in tokens]
    tags = _read_all_tags(all_tokens, joins_equal=False)
    joiner = _joiner(all_tokens)
    for tokens, entities in sentences:
        if tokens:
            spans = tags_to_spans(tags[token.tag] for token in tokens)
            # The tags of words in brackets are not used.
            outside = [span for span in spans if not _overlaps_any(span, entities)]
            yield _joined(tokens, outside + entities, joiner)


def _overlaps_any(span: Span, others: Iterable[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end, _ in others)


def _read_all_tags(
    tokens: Sequence[_Token], joins_equal: bool = True
) -> dict[str, str]:
    """Return the tag such as B-PER of each name in a file; warn of what is assumed."""
    counts = Counter(token.tag for token in tokens)
    for token in tokens:
        if "|" in token.tag[1:]:
            raise AlbertError(
                f"{token.place} has several tags, {token.tag!r:.80}. A token has one. "
                "Keep one of them, or if this is one name, write it without |."
            )
    # A table of texts has nearly as many last words as rows.
    are_few = 2 * len(set(counts) - {OUTSIDE}) <= len(tokens)
    reading = read_tags(counts, are_few or not joins_equal, joins_equal)
    tags = dict(reading.tags)
    if not reading.are_plain:
        pieces = [name for name in tags if name.upper() == PIECE]
        tags.update(dict.fromkeys(pieces, PIECE))
    for token in tokens:
        with _naming(token.place):
            split_tag(tags[token.tag])
    notes = reading.notes
    if reading.are_plain and not joins_equal:
        # All words of such a file have tags, as its form shows.
        notes = notes[1:]
    for note in notes:
        warnings.warn(note, stacklevel=6)
    return tags


def _find_marks(tokens: Sequence[_Token], tags: dict[str, str]) -> set[str]:
    """Return tokens such as [CLS] that no entity has, and warn of them."""
    inside = {token.text for token in tokens if tags[token.tag] != OUTSIDE}
    marks = [
        token for token in tokens if is_mark(token.text) and token.text not in inside
    ]
    if marks:
        warnings.warn(
            f"{len(marks)} tokens such as {marks[0].text!r} ({marks[0].place}) are "
            "marks of a program, not text. They are left out.",
            stacklevel=6,
        )
    return {token.text for token in marks}


def _joiner(tokens: Sequence[_Token]) -> str:
    """Return what stands between words: nothing, if most are Chinese or characters."""
    texts = [token.text for token in tokens]
    unspaced = sum(len(text) == 1 or text[-1] >= _FIRST_UNSPACED for text in texts)
    return "" if unspaced > len(texts) / 2 else " "


def _joined(tokens: Sequence[_Token], spans: Iterable[Span], joiner: str) -> Entities:
    """Return the text of tokens, and their spans in characters."""
    text = ""
    starts, ends = [], []
    for token in tokens:
        text += joiner if text else ""
        starts.append(len(text))
        text += token.text
        ends.append(len(text))
    in_characters = [
        (starts[first], ends[end - 1], label) for first, end, label in spans
    ]
    return Entities(tokens[0].place, text, in_characters)


# === Tables, of which the objects of JSON are one ===


class _SpanWithText(NamedTuple):
    """A span of a tool, with the text that it has there, if the tool wrote it."""

    start: Any
    end: Any
    label: Any
    surface: str | None


def _read_table(table: Table) -> Iterator[Entities]:
    table.find("text", "label")
    texts = table.strings("text")
    cells = table.column("label")
    moved = []
    for place, text, cell in zip(table.places, texts, cells, strict=True):
        spans = []
        is_moved = False
        with _naming(place):
            for given in _spans_of(label_value(cell)):
                if not isinstance(given, _SpanWithText):
                    spans.append(given)
                    continue
                span = _located(text, given)
                spans.append(span)
                is_moved = is_moved or span != given[:3]
        if is_moved:
            moved.append(place)
        yield Entities(place, text, spans)
    if moved:
        warnings.warn(
            f"{len(moved)} texts, the first of them {moved[0]}, have offsets in UTF-16 "
            "units, two for an emoji. They are converted by the text of each span.",
            stacklevel=3,
        )


def _spans_of(value: Any) -> Iterator[Any]:
    """Yield the spans of a cell: lists as they are, others as `_SpanWithText`."""
    return _cluener_spans(value) if isinstance(value, dict) else _tool_spans(value)


def _cluener_spans(labels: dict[str, Any]) -> Iterator[_SpanWithText]:
    for label, surfaces in labels.items():
        if not isinstance(surfaces, dict):
            raise AlbertError(
                f"The label {label!r} has {surfaces!r:.200}. Expected the text of each "
                'entity and its places, such as {"叶老桂": [[9, 11]]}.'
            )
        for surface, places in surfaces.items():
            for start, end in places:
                # The end is the last character.
                yield _SpanWithText(start, end + 1, label, surface)


def _tool_spans(values: Any) -> Iterator[Any]:
    for span in values or ():
        if not isinstance(span, dict):
            yield span
            continue
        labels = span.get("labels", [span.get("label")])
        if len(labels) != 1:
            raise AlbertError(f"{span!r:.200} has {len(labels)} labels. Expected one.")
        start = span.get("start_offset", span.get("start"))
        end = span.get("end_offset", span.get("end"))
        yield _SpanWithText(start, end, labels[0], span.get("text"))


def _located(text: str, span: _SpanWithText) -> tuple[Any, Any, Any]:
    """Return a span in characters; raise if the text there is not its `surface`."""
    start, end, label, surface = span
    if not (isinstance(start, int) and isinstance(end, int) and surface):
        return start, end, label
    if text[start:end] == surface:
        return start, end, label
    units = text.encode("utf-16-le", "surrogatepass")
    if units[2 * start : 2 * end] == surface.encode("utf-16-le", "surrogatepass"):
        start = len(units[: 2 * start].decode("utf-16-le", "surrogatepass"))
        return start, start + len(surface), label
    raise AlbertError(f"text[{start}:{end}] is {text[start:end]!r}, not {surface!r}.")
