"""What a pipeline is called with, as the x of its model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from albert_tf_lite.errors import AlbertError

# A field whose value is a list of strings; that of others is a string.
CHOICES = "choices"


def read_inputs(
    given: Any, fields: Sequence[str], optional: Sequence[str] = ()
) -> tuple[list[tuple], bool]:
    """Examples, in whatever form they are given.

    Args:
        given: one example: a string, a tuple or a dict of the fields; a list of such;
            or a tuple or dict of lists, a field each, in which a string is the same for
            all examples.
        fields: the names of the parts of an example.
        optional: those that may be left out, the last ones.

    Returns:
        A list of tuples, as long as one another, and whether it is one example.

    Raises:
        TypeError: if an example is nothing of this.
        AlbertError: if one lacks a field, or has one that others have not.
    """
    if isinstance(given, (str, tuple, dict)):
        parts = _example(given, fields, optional, "The input")
        texts = [x for name, x in zip(fields, parts, strict=False) if name != CHOICES]
        is_one = all(isinstance(x, str) for x in texts)
        examples = [parts] if is_one else _rows(parts, fields)
    elif not isinstance(given, Iterable):
        raise TypeError(
            f"The input should be {_shown(fields, optional)}; or a list of such. "
            f"Received: {given!r}"
        )
    else:
        is_one = False
        examples = [
            _example(one, fields, optional, f"Element {i} of the input")
            for i, one in enumerate(given)
        ]
    for i, example in enumerate(examples):
        _check(example, len(examples[0]), fields, "" if is_one else f" {i}")
    return examples, is_one


def as_x(examples: list[tuple]) -> Any:
    """What `predict` takes: a list of strings, or the tuple of several lists."""
    columns = tuple(map(list, zip(*examples, strict=True)))
    return columns[0] if len(columns) == 1 else columns


def _example(given, fields, optional, name):
    if isinstance(given, str):
        given = (given,)
    elif isinstance(given, dict):
        unknown = sorted(set(given) - set(fields))
        missing = [x for x in fields if given.get(x) is None and x not in optional]
        if unknown or missing:
            raise AlbertError(
                f"{name} should have the fields {list(fields)}. Missing: {missing}; "
                f"unknown: {unknown}."
            )
        given = [given[x] for x in fields if given.get(x) is not None]
    elif not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{name} should be {_shown(fields, optional)}. Received: "
            f"{type(given).__name__} {str(given)[:80]}"
        )
    if not len(fields) - len(optional) <= len(given) <= len(fields):
        raise AlbertError(
            f"{name} should be {_shown(fields, optional)}. Received {len(given)} of "
            f"these: {str(given)[:80]}"
        )
    return tuple(given)


def _rows(parts, fields):
    """The examples of columns."""
    columns = [part if isinstance(part, str) else list(part) for part in parts]
    counts = {len(x) for x in columns if not isinstance(x, str)}
    if len(counts) > 1:
        raise AlbertError(
            f"The lists of {', '.join(fields)} should have the same length. Received "
            f"the lengths {sorted(counts)}."
        )
    (count,) = counts
    columns = [[x] * count if isinstance(x, str) else x for x in columns]
    return list(zip(*columns, strict=True))


def _check(example, length, fields, number):
    if len(example) != length:
        raise AlbertError(
            f"Example{number} has {len(example)} of the parts {list(fields)}, the "
            f"first has {length}. Give all of the same kind."
        )
    for name, value in zip(fields, example, strict=False):
        values = value if name == CHOICES else [value]
        wanted = "a list of strings" if name == CHOICES else "a string"
        are_strings = isinstance(values, (list, tuple)) and len(values)
        if not are_strings or not all(isinstance(x, str) for x in values):
            raise TypeError(
                f"`{name}` of example{number} should be {wanted}. Received: "
                f"{str(value)[:80]!r}"
            )


def _shown(fields, optional):
    parts = f"a dict or tuple of {', '.join(fields)}"
    return parts if len(fields) - len(optional) > 1 else f"a string, or {parts}"
