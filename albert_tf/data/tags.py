"""Tags of tokens, such as B-PER, and the spans of entities that they encode."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.tagging import OUTSIDE, PREFIXES

# The prefixes that each scheme writes. All schemes of `PREFIXES` are read.
SCHEMES = {"BIO": "BI", "BIOES": "BIES"}

# (start, end, label) in tokens or characters; `end` is exclusive.
Span = tuple[int, int, str]


def tag_names(labels: Sequence[str], scheme: str = "BIO") -> list[str]:
    """Return the tags of some labels: `O`, then those of each label.

    Args:
        labels: list of distinct strings, such as `["PER", "LOC"]`.
        scheme: `"BIO"` or `"BIOES"`.

    Raises:
        AlbertError: if the scheme is unknown, or labels are missing, empty or repeated.

    Example:

    >>> tag_names(["PER", "LOC"])
    ['O', 'B-PER', 'I-PER', 'B-LOC', 'I-LOC']
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
            "`labels` should be distinct names of entity types, such as "
            f'["PER", "LOC", "ORG"]. Received: {labels}'
        )
    return [OUTSIDE, *(f"{x}-{name}" for name in names for x in SCHEMES[scheme])]


def split_tag(tag: str) -> tuple[str, str]:
    """Return the prefix (`B`, `I`, `E`, `S` or `O`) and the label of a tag.

    Raises:
        AlbertError: if `tag` is not a tag of a known scheme.
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if len(tag) > 2 and tag[1] in "-_" and tag[0] in PREFIXES:
        return PREFIXES[tag[0]], tag[2:]
    raise AlbertError(
        f"{tag!r} is not a tag. Expected O, or a prefix and a label such as B-PER. The "
        f"prefixes are {' '.join(PREFIXES)}."
    )


def tags_to_spans(tags: Iterable[str]) -> list[Span]:
    """Return the spans of a sequence of tags, in tokens.

    As in the script of CoNLL-2000, an inside tag without a begin tag begins an entity,
    so IOB1 and IO are read, too.

    Raises:
        AlbertError: as `split_tag`.

    Example:

    >>> tags_to_spans(["B-PER", "I-PER", "O", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    spans, start, label = [], 0, None
    for position, (prefix, name) in enumerate([*map(split_tag, tags), (OUTSIDE, "")]):
        continues = prefix in "IE" and name == label
        if label is not None and not continues:
            spans.append((start, position, label))
            label = None
        if prefix != OUTSIDE and not continues:
            start, label = position, name
        if prefix in "ES":
            spans.append((start, position + 1, label))
            label = None
    return spans


def spans_to_tags(spans: Iterable[Span], length: int, scheme: str = "BIO") -> list[str]:
    """Return the tags of `length` tokens whose entities are `spans`, in tokens.

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


def check_spans(spans: Iterable, length: int) -> list[Span]:
    """Return spans as sorted tuples, after checking that they fit and do not overlap.

    Args:
        spans: list of (start, end, label).
        length: int. Length of the text.

    Raises:
        AlbertError: if a span is malformed, outside the text or overlaps another.
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
                f"{span!r} is not a span. Expected (start, end, label), with offsets "
                'in characters, such as (0, 2, "LOC").'
            ) from None
        if not 0 <= start < end <= length:
            raise AlbertError(
                f"the span {(start, end, label)} does not lie in the text, which has "
                f"{length} characters. The end is exclusive."
            )
        checked.append((start, end, label))
    checked.sort()
    for first, second in zip(checked, checked[1:], strict=False):
        if second[0] < first[1]:
            raise AlbertError(
                f"the spans {first} and {second} overlap. A character has one label."
            )
    return checked
