"""The classes of labels, and the comparison of labels with classes or numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, NamedTuple

from albert_tf.data.labels.cleaning import Label
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import (
    as_label,
    as_list,
    is_container,
    is_missing,
    number_of,
)

# The most invalid labels that a message names.
_SHOWN = 10


class Matches(NamedTuple):
    """The values of labels, and a message about those without a value.

    Attributes:
        values: list, `None` for an invalid label.
        message: string that names the invalid labels and their places.
    """

    values: list[Any]
    message: str


def class_names(labels: Iterable) -> list:
    """Return the distinct labels, sorted by number if all are numbers, else by text.

    Empty and missing labels are left out.

    Args:
        labels: list, array, Series or set of strings or numbers.

    Returns:
        A list of strings, or of numbers if the labels are.

    Raises:
        AlbertError: if a text has several labels.

    Example:

    >>> class_names(["10", "9", "10", ""])
    ['9', '10']
    """
    values = labels if isinstance(labels, Set) else as_list(labels, "labels")
    for several in filter(is_container, values):
        raise AlbertError(
            f"A text has the labels {list(several)}. Expected one label per text. Pass "
            "the names of all lists, [name for names in labels for name in names]."
        )
    names = {as_label(value) for value in values if not is_missing(value)} - {""}
    # A plain string for each subclass, such as the only label of a list in JSON.
    names = {str(name) if isinstance(name, str) else name for name in names}
    numbers: dict[Any, Any] = {name: number_of(name) for name in names}
    if None in numbers.values():
        return sorted(names, key=str)
    return sorted(names, key=numbers.__getitem__)


def match_classes(
    labels: Sequence[Label], places: Sequence[str], classes: Sequence
) -> Matches:
    """Return the position of each label among the classes."""
    positions = {str(name): position for position, name in enumerate(classes)}
    return _match(labels, places, positions.__getitem__)


def match_numbers(labels: Sequence[Label], places: Sequence[str]) -> Matches:
    """Return each label as a finite number."""
    return _match(labels, places, _finite_number)


def require_all(matches: Matches, expected: str) -> list:
    """Return the values; raise an error that names what was `expected` if one lacks."""
    if None in matches.values:
        raise AlbertError(
            f"{matches.message} Expected {expected}. Correct them or leave them out "
            "(--skip-invalid of finetune and evaluate, or the method "
            "`without_invalid`)."
        )
    return matches.values


def _match(
    labels: Sequence[Label], places: Sequence[str], convert: Callable[[Any], Any]
) -> Matches:
    values: list[Any] = []
    wrong: list[str] = []
    for place, label in zip(places, labels, strict=True):
        try:
            values.append(convert(label))
        except (KeyError, TypeError, ValueError):
            values.append(None)
            shown = "no label" if label is None else f"the label {label!r}"
            wrong.append(f"{place} has {shown}")
    count = f"{len(wrong)} labels are invalid: " if len(wrong) > 1 else ""
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return Matches(values, f"{count}{', '.join(wrong[:_SHOWN])}{more}.")


def _finite_number(label: Any) -> float:
    number = float(label)
    if not math.isfinite(number):
        raise ValueError
    return number


def expected_classes(classes: Sequence) -> str:
    """Return what a message calls the expected label."""
    return f"one of the classes {listed(classes, _SHOWN)}"
