"""Tags such as B-PER, the spans that they encode, and files of tagged texts."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import numbers
import operator
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

from albert_tf.data.forms import label_value
from albert_tf.data.labels import clean_spans, visible
from albert_tf.data.reading import endings, is_json, stream_lines
from albert_tf.data.slashes import SlashReader, has_slashes
from albert_tf.data.tables import Table
from albert_tf.data.tags import PIECE, is_mark, is_tag, read_tags
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import as_label, as_list, complete
from albert_tf_lite.tagging import OUTSIDE, split_tag, tags_to_spans

# The prefixes that each scheme writes. More schemes are read.
SCHEMES = {"BIO": "BI", "BIOES": "BIES"}
# Characters from here on are written without spaces between words.
_FIRST_UNSPACED = "\u2e80"

# Files of these suffixes are tables. JSON is one, too.
_TABLES = (".csv", ".xlsx", ".parquet")

# (start, end, label) in tokens or characters; `end` is exclusive.
Span = tuple[int, int, str]


# === Tags ===


def tag_names(labels: Sequence[str], scheme: str = "BIO") -> list[str]:
    """Return the tags of distinct labels: `O`, then those of each label."""
    if scheme not in SCHEMES:
        raise AlbertError(
            f"`scheme` must be one of {list(SCHEMES)}. Received: {scheme}"
        )
    names = [] if isinstance(labels, str) else as_list(labels, "labels")
    names = [str(as_label(name)) for name in complete(names, "labels")]
    if OUTSIDE in names:
        raise AlbertError(
            f"`labels` are kinds of entities, without O and prefixes. Received "
            f"{labels!r}. Pass tags in the order of the outputs as `tags=`."
        )
    # Names that look alike are not distinct.
    if not names or "" in names or len(set(map(visible, names))) < len(names):
        raise AlbertError(
            "`labels` should be a list of distinct names of entity types, such as "
            f'["PER", "LOC", "ORG"]. Received: {labels!r:.200}'
        )
    return [OUTSIDE, *(f"{x}-{name}" for name in names for x in SCHEMES[scheme])]


def spans_to_tags(spans: Iterable[Span], length: int, scheme: str = "BIO") -> list[str]:
    """Return the tags of a sequence of tokens with the entities `spans`.

    Args:
        spans: (start, end, label) in tokens, which do not overlap.
        length: int. Number of tokens.
        scheme: `"BIO"` or `"BIOES"`.

    Returns:
        A list of `length` strings.

    Example:

    >>> spans_to_tags([(0, 2, "PER")], 3)
    ['B-PER', 'I-PER', 'O']
    """
    tags = [OUTSIDE] * length
    for start, end, label in spans:
        for position, prefix in enumerate(prefixes_of(end - start, scheme), start):
            tags[position] = f"{prefix}-{label}"
    return tags


def prefixes_of(length: int, scheme: str) -> str:
    """Return the prefixes of an entity of `length` tokens, such as `"BIE"`."""
    if scheme == "BIO":
        return "B" + "I" * (length - 1)
    return "S" if length == 1 else "B" + "I" * (length - 2) + "E"


def check_spans(
    spans: Iterable, length: int, labels: Sequence[str] | None = None
) -> list[Span]:
    """Return spans as sorted tuples; raise if one is outside the text or overlaps.

    If `labels` are given, other labels raise, too.
    """
    checked: list[Span] = []
    spans = list(spans) if isinstance(spans, Set) else as_list(spans, "spans")
    for span in spans:
        try:
            start, end, label = span
            start, end = operator.index(start), operator.index(end)
        except (TypeError, ValueError):
            label = None
        if isinstance(label, numbers.Integral):
            label = str(label)
        if not isinstance(label, str):
            raise AlbertError(
                f"{span!r} is not a span. Expected (start, end, label), with offsets "
                'in characters, such as (0, 2, "LOC"). Convert the tags of characters '
                "with [albert_tf.data.tags_to_spans(tags) for tags in y], and dicts "
                'with [[(s["start"], s["end"], s["label"]) for s in row] for row in y].'
            )
        if not 0 <= start < end <= length:
            raise AlbertError(
                f"the span {span!r} does not lie in the text, which has {length} "
                "characters. The end is exclusive."
            )
        if labels is not None and label not in labels:
            raise AlbertError(
                f"the span {span!r} has an unknown label. Expected one of "
                f"{listed(labels, 10)}."
            )
        checked.append((start, end, str(label)))
    checked.sort()
    for first, second in zip(checked, checked[1:], strict=False):
        if second[0] < first[1]:
            raise AlbertError(
                f"the spans {first} and {second} overlap. A character has one label."
            )
    return checked


# === Files ===


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
    for place, text, found in tagged_rows(path, encoding, sheet):
        with _naming(place):
            spans.append(check_spans(found, len(text)))
        texts.append(text)
    return TaggedTexts(texts, clean_spans(spans))


def has_tags(path: str | os.PathLike, encoding: str | None = None) -> bool:
    """Return whether the first lines of a file have tags, not texts or a table."""
    if endings(path)[0] in _TABLES:
        return False
    head = list(itertools.islice(stream_lines(path, encoding), 50))
    lines = [line for line in head if line.strip() and not line.startswith("-DOC")]
    if not lines or is_json(lines[0]):
        return False
    if all(map(has_slashes, lines)):
        return True
    rows = [line.split() for line in lines]
    tags = {row[-1] for row in rows}
    reading = read_tags(tags, may_be_plain=False).tags
    # Parts of speech are few.
    are_tags = 3 * len(tags) <= len(rows) or all(map(is_tag, reading.values()))
    return are_tags and {*map(len, rows)} == {len(rows[0])} and len(rows[0]) > 1


def tagged_rows(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> Iterator[tuple[str, str, list]]:
    """Yield place, text and spans of each example, as `read_tagged_texts`."""
    if endings(path)[0] in _TABLES:
        return _read_table(Table(path, None, encoding, sheet))
    rows = enumerate(stream_lines(path, encoding), start=1)
    lines = [(f"Line {i} of {path}", line) for i, line in rows]
    first = next((line.strip() for _, line in lines if line.strip()), "")
    if not first:
        raise AlbertError(f"{path} is empty. Expected texts with entities.")
    if is_json(first):
        return _read_table(Table(path, None, encoding, sheet))
    if has_slashes(first):
        return _read_slashes(lines)
    return _read_columns(lines)


@contextlib.contextmanager
def _naming(place):
    """Name the place in errors about its content."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        raise AlbertError(f"{place}: {error}") from None


# === Readers: they yield place, text and spans ===


@dataclasses.dataclass(frozen=True)
class _Token:
    """A word or a character of a file, and its tag."""

    place: str
    text: str
    tag: str


def _read_columns(lines):
    sentences: list[list[_Token]] = [[]]
    for place, line in lines:
        if not line.strip() or line.startswith("-DOCSTART-"):
            sentences.append([])
            continue
        token, *others = line.split()
        if not others and line[0].isspace():
            token, others = line[0], [token]
        sentences[-1].append(_Token(place, token, others[-1] if others else ""))
    tokens = list(itertools.chain(*sentences))
    reading = _read_all_tags(tokens)
    marks = _find_marks(tokens, reading)
    joiner = _joiner([token for token in tokens if token.text not in marks])
    for sentence in sentences:
        rows = [token for token in sentence if token.text not in marks]
        if not rows:
            continue
        spans = tags_to_spans(reading[token.tag] for token in rows)
        yield rows[0].place, *_joined(rows, spans, joiner)


def _read_slashes(lines):
    reader, parsed = SlashReader(), []
    for place, line in lines:
        row = reader.read(place, line)
        tokens = [_Token(place, word, tag) for word, tag in row.tokens]
        parsed.append((tokens, row.entities))
    reader.warn()
    tokens = [token for row, _ in parsed for token in row]
    reading = _read_all_tags(tokens, joins_equal=False)
    joiner = _joiner(tokens)
    for rows, entities in parsed:
        if not rows:
            continue
        spans = tags_to_spans(reading[token.tag] for token in rows)
        # The tags of words in brackets are not used.
        for start, end, _ in entities:
            spans = [x for x in spans if x[1] <= start or end <= x[0]]
        yield rows[0].place, *_joined(rows, [*spans, *entities], joiner)


def _read_all_tags(tokens, joins_equal=True):
    """Return the tag such as B-PER of each name in a file; warn of what is assumed."""
    counts = Counter(token.tag for token in tokens)
    for token in tokens:
        if "|" in token.tag[1:]:
            raise AlbertError(
                f"{token.place} has several tags, {token.tag!r}. A token has one. Keep "
                "one of them, or if this is one name, write it without |."
            )
    # A table of texts has nearly as many last words as rows.
    are_few = 2 * len(set(counts) - {OUTSIDE}) <= len(tokens)
    reading = read_tags(counts, are_few or not joins_equal, joins_equal)
    tags = dict(reading.tags)
    if not reading.are_plain:
        pieces = [name for name in tags if name.upper() == PIECE]
        tags |= dict.fromkeys(pieces, PIECE)
    for token in tokens:
        with _naming(token.place):
            split_tag(tags[token.tag])
    # All words of such a file have tags, as its form shows.
    is_usual = reading.are_plain and not joins_equal
    for note in reading.notes[is_usual:]:
        warnings.warn(note, stacklevel=6)
    return tags


def _find_marks(tokens, reading):
    """Return tokens such as [CLS] that no entity has, and warn of them."""
    inside = {x.text for x in tokens if reading[x.tag] != OUTSIDE}
    rows = [x for x in tokens if is_mark(x.text) and x.text not in inside]
    if rows:
        warnings.warn(
            f"{len(rows)} tokens such as {rows[0].text!r} ({rows[0].place}) are marks "
            "of a program, not text. They are left out.",
            stacklevel=6,
        )
    return {token.text for token in rows}


def _joiner(tokens):
    """Return what stands between words: nothing, if most are Chinese or characters."""
    texts = [token.text for token in tokens]
    unspaced = sum(len(x) == 1 or x[-1] >= _FIRST_UNSPACED for x in texts)
    return "" if unspaced > len(texts) / 2 else " "


def _joined(tokens, spans, joiner):
    """Return the text of tokens, and their spans in characters."""
    text, bounds = "", []
    for token in tokens:
        text += joiner if text else ""
        bounds.append((len(text), len(text) + len(token.text)))
        text += token.text
    return text, [(bounds[i][0], bounds[j - 1][1], label) for i, j, label in spans]


def _read_table(table):
    table.find("text", "label")
    (texts,) = table.cells("text")
    moved = []
    for place, text, value in zip(
        table.places, texts, table.column("label"), strict=True
    ):
        value = label_value(value)
        with _naming(place):
            given = list((_cluener if isinstance(value, dict) else _spans)(value))
            # A span with its text is a tuple.
            spans = [_located(text, *x) if isinstance(x, tuple) else x for x in given]
        if any(
            isinstance(x, tuple) and x[:3] != y
            for x, y in zip(given, spans, strict=True)
        ):
            moved.append(place)
        yield place, text, spans
    if moved:
        warnings.warn(
            f"{len(moved)} texts, the first of them {moved[0]}, have offsets in UTF-16 "
            "units, two for an emoji. They are converted by the text of each span.",
            stacklevel=3,
        )


def _cluener(labels):
    for label, surfaces in labels.items():
        if not isinstance(surfaces, dict):
            raise AlbertError(
                f"The label {label!r} has {surfaces!r}. Expected the text of each "
                'entity and its places, such as {"叶老桂": [[9, 11]]}.'
            )
        for surface, places in surfaces.items():
            for start, end in places:
                # The end is the last character.
                yield start, end + 1, label, surface


def _spans(values):
    for span in values or ():
        if not isinstance(span, dict):
            yield span
            continue
        labels = span.get("labels", [span.get("label")])
        if len(labels) != 1:
            raise AlbertError(f"{span} has {len(labels)} labels. Expected one.")
        bounds = (span.get(f"{x}_offset", span.get(x)) for x in ("start", "end"))
        yield *bounds, labels[0], span.get("text")


def _located(text, start, end, label, surface=None):
    """Return a span in characters; raise if the text there is not its `surface`."""
    are_offsets = isinstance(start, int) and isinstance(end, int)
    if not (are_offsets and surface) or (found := text[start:end]) == surface:
        return start, end, label
    units = text.encode("utf-16-le", "surrogatepass")
    if units[2 * start : 2 * end] == surface.encode("utf-16-le", "surrogatepass"):
        start = len(units[: 2 * start].decode("utf-16-le", "surrogatepass"))
        return start, start + len(surface), label
    raise AlbertError(f"text[{start}:{end}] is {found!r}, not {surface!r}.")
