"""Spans of a text: entities with a label, and the places of answers."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable, Sequence, Set
from typing import Any

from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import as_list

# (start, end, label) in tokens or characters; `end` is exclusive.
Span = tuple[int, int, str]


def check_spans(
    spans: Iterable, length: int, labels: Sequence[str] | None = None
) -> list[Span]:
    """Return spans as sorted tuples; raise if one is outside the text or overlaps.

    If `labels` are given, other labels raise, too.
    """
    values = list(spans) if isinstance(spans, Set) else as_list(spans, "spans")
    checked = []
    for value in values:
        span = _parse_span(value)
        start, end, label = span
        if not 0 <= start < end <= length:
            raise AlbertError(
                f"the span {value!r:.200} does not lie in the text, which has {length} "
                "characters. The end is exclusive."
            )
        if labels is not None and label not in labels:
            raise AlbertError(
                f"the span {value!r:.200} has an unknown label. Expected one of "
                f"{listed(labels, 10)}."
            )
        checked.append(span)
    checked.sort()
    for first, second in zip(checked, checked[1:], strict=False):
        if second[0] < first[1]:
            raise AlbertError(
                f"the spans {first} and {second} overlap. A character has one label."
            )
    return checked


def _parse_span(value: Any) -> Span:
    """Return a span with plain numbers and a string; raise for another form."""
    try:
        first, last, label = value
        start, end = operator.index(first), operator.index(last)
    except (TypeError, ValueError):
        raise _not_a_span(value) from None
    if not isinstance(label, (str, numbers.Integral)):
        raise _not_a_span(value)
    return start, end, str(label)


def _not_a_span(value: Any) -> AlbertError:
    """Return the error about a value of another form."""
    return AlbertError(
        f"{value!r:.200} is not a span. Expected (start, end, label), with offsets "
        'in characters, such as (0, 2, "LOC"). Convert the tags of characters '
        "with [albert_tf.data.tags_to_spans(tags) for tags in y], and dicts "
        'with [[(s["start"], s["end"], s["label"]) for s in row] for row in y].'
    )


def find_answer(context: str, start: int | None, text: str) -> int | None:
    """Return where a text begins that is nearest to a start, or `None`.

    >>> find_answer("黄河长5464公里", 5, "5464公里")
    3
    """
    start = max(start or 0, 0)
    before = context.rfind(text, 0, start + len(text))
    after = context.find(text, start)
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)
