"""Tags of tokens, such as B-PER: their names, and the spans they stand for."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from albert_tf_lite.errors import AlbertError

OUTSIDE = "O"
# Begin, inside, end, single; BMES and BILOU call some of them otherwise.
PREFIXES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
SCHEMES = {"BIO": "BI", "BIOES": "BIES"}

# (start, end, label) in tokens or characters, the end not included.
Span = tuple[int, int, str]


def tag_names(labels: Sequence[str], scheme: str = "BIO") -> list[str]:
    """The tags of some labels: `O`, then those of each label.

    Args:
        labels: list of different strings, such as `["PER", "LOC"]`.
        scheme: `"BIO"` or `"BIOES"`.

    Raises:
        AlbertError: if the scheme is unknown, or labels are missing, empty or repeated.
    """
    if scheme not in SCHEMES:
        raise AlbertError(
            f"`scheme` must be one of {list(SCHEMES)}. Received: {scheme}"
        )
    if isinstance(labels, str):
        raise AlbertError(f"`labels` should be a list of strings, not {labels!r}.")
    names = [str(label) for label in labels]
    if not names or "" in names or len(set(names)) < len(names):
        raise AlbertError(
            "`labels` should be the kinds of entities, each named differently, such "
            f'as ["PER", "LOC", "ORG"]. Received: {labels}'
        )
    return [OUTSIDE, *(f"{x}-{name}" for name in names for x in SCHEMES[scheme])]


def split_tag(tag: str) -> tuple[str, str]:
    """The prefix (`B`, `I`, `E`, `S`, or `O`) of a tag, and its label.

    Raises:
        AlbertError: if it is none of these.
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if len(tag) > 2 and tag[1] in "-_" and tag[0] in PREFIXES:
        return PREFIXES[tag[0]], tag[2:]
    raise AlbertError(
        f"{tag!r} is no tag. Expected O, or a prefix and a label such as B-PER; the "
        f"prefixes are {' '.join(PREFIXES)}."
    )


def tags_to_spans(tags: Iterable[str]) -> list[Span]:
    """The spans of a sequence of tags, in tokens.

    As the script of CoNLL-2000 reads them: what is inside without a beginning begins
    where it is first, so that IOB1 and IO are read, too.

    Raises:
        AlbertError: as `split_tag`.
    """
    spans, start, label = [], 0, None
    for position, (prefix, name) in enumerate([*map(split_tag, tags), (OUTSIDE, "")]):
        goes_on = prefix in "IE" and name == label
        if label is not None and not goes_on:
            spans.append((start, position, label))
            label = None
        if prefix != OUTSIDE and not goes_on:
            start, label = position, name
        if prefix in "ES":
            spans.append((start, position + 1, label))
            label = None
    return spans


def spans_to_tags(spans: Iterable[Span], length: int, scheme: str = "BIO") -> list[str]:
    """The tags of `length` tokens of which some, by `spans`, are entities."""
    tags = [OUTSIDE] * length
    for start, end, label in spans:
        for position, prefix in enumerate(prefixes_of(end - start, scheme), start):
            tags[position] = f"{prefix}-{label}"
    return tags


def prefixes_of(length: int, scheme: str) -> str:
    """The prefixes of an entity of `length` tokens, such as `"BIE"`."""
    if scheme == "BIO":
        return "B" + "I" * (length - 1)
    return "S" if length == 1 else "B" + "I" * (length - 2) + "E"


def check_spans(spans: Iterable, length: int) -> list[Span]:
    """Spans as sorted tuples, within a text and apart from one another.

    Args:
        spans: list of (start, end, label).
        length: int, of the text.

    Raises:
        AlbertError: saying what is wrong with which.
    """
    checked = []
    for span in spans:
        try:
            start, end, label = span
            start, end = operator.index(start), operator.index(end)
            if not isinstance(label, str):
                raise TypeError
        except (TypeError, ValueError):
            raise AlbertError(
                f"{span!r} is no span. Expected (start, end, label), with offsets in "
                'characters, such as (0, 2, "LOC").'
            ) from None
        if not 0 <= start < end <= length:
            raise AlbertError(
                f"the span {(start, end, label)} does not lie in the text, which has "
                f"{length} characters; its end is the position after the last."
            )
        checked.append((start, end, label))
    checked.sort()
    for first, second in zip(checked, checked[1:], strict=False):
        if second[0] < first[1]:
            raise AlbertError(
                f"the spans {first} and {second} overlap. A character has one label."
            )
    return checked
