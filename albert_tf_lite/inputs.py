"""Texts and labels in the containers that people keep them in, as plain lists.

Elements are read by their position, never by the index of a pandas object.
"""

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError, listed

# Methods that return a list: those of Arrow, of NumPy and pandas, of Polars and of
# ragged tensors.
_TO_LIST = ("to_pylist", "tolist", "to_list")
# The types of `pandas.NA` and `pandas.NaT`.
_MISSING = ("NAType", "NaTType")
# The remedy for several labels of a text.
_SEVERAL = " For several labels per text use AlbertMultiLabelClassifier with {name}."
# The most labels that an error shows.
_SHOWN = 10


def as_list(values: Any, name: str = "values") -> list:
    """Return the elements of a list, array, Series, column, tensor or generator."""
    if isinstance(values, list):
        return values
    kind = type(values)
    if hasattr(kind, "columns") or hasattr(kind, "column_names"):
        raise AlbertError(
            f"`{name}` should be a list or one column. Received a table, a "
            f"{kind.__name__}. Pass a column, such as table['text'], or for columns of "
            "0 and 1, one per class in the order of the model's `labels`, "
            "table[labels].to_numpy()."
        )
    rows = values.toarray() if hasattr(kind, "toarray") else values
    method = next((x for x in _TO_LIST if hasattr(type(rows), x)), None)
    if method:
        rows = getattr(rows, method)()
    elif hasattr(kind, "__array__"):
        rows = np.asarray(rows).tolist()
    if isinstance(rows, (str, bytes, Mapping, Set)) or not isinstance(rows, Iterable):
        raise AlbertError(
            f"`{name}` should be a list, an array, a Series or one column. Received a "
            f"{kind.__name__}: {values!r:.80}{_remedy(values, name)}"
        )
    return list(rows)


def _remedy(values: Any, name: str) -> str:
    """Return a sentence with the line that makes a list of another container."""
    if isinstance(values, Set):
        return f". A set has no order: pass sorted({name}) if any order is right."
    if isinstance(values, Mapping):
        return f". Pass list({name}.values()) if its order is right."
    return ""


def as_texts(values: Any, name: str = "texts") -> list:
    """Return strings, or lists of strings, in any container as lists of `str`."""
    values = as_list(values, name)
    if all(type(value) is str for value in values):
        return values
    return [_as_text(value, name, i) for i, value in enumerate(values)]


def _as_text(value, name, position):
    if isinstance(value, bytes):
        return value.decode("utf-8", "ignore")
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Iterable):
        return as_texts(value, f"{name}[{position}]")
    remedy = " Leave missing texts out." if is_missing(value) else ""
    raise TypeError(
        f"`{name}` should hold strings. Element {position} is {value!r} of type "
        f"{type(value).__name__}.{remedy}"
    )


def is_missing(value: Any) -> bool:
    """Return whether a value is `None`, NaN, `pandas.NA` or `pandas.NaT`."""
    is_nan = isinstance(value, (float, np.floating)) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in _MISSING


def complete(values: list, name: str) -> list:
    """Return the values. Raise if one is missing."""
    missing = [i for i, value in enumerate(values) if is_missing(value)]
    if missing:
        raise AlbertError(
            f"Element {missing[0]} of `{name}` is missing: {values[missing[0]]!r}. "
            f"{len(missing)} of {len(values)} are. Leave these examples out."
        )
    return values


def single_values(rows: list) -> list:
    """Return values without the containers that hold one each, as of a column.

    Such are lists, tuples, sets and arrays. If a row is no container of one value, the
    rows are returned as they are.
    """
    if not rows or not all(is_container(row) and len(row) == 1 for row in rows):
        return rows
    return [next(iter(row)) for row in rows]


def is_container(value: Any) -> bool:
    """Return whether a value is a list, tuple, set or array of several axes."""
    is_array = getattr(value, "ndim", 0) > 0
    return is_array or isinstance(value, (list, tuple, Set))


def several_in(values: Iterable, separators: str) -> str | None:
    """Return the first separator that a string among the values has, if any."""
    strings = [value for value in values if isinstance(value, str)]
    return next((x for x in separators if any(x in text for text in strings)), None)


def check_integer(
    name: str, value: Any, least: int = 1, most: int | None = None
) -> int:
    """Return an integer, also one of NumPy, as `int`; raise if it is out of range."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        limit = f"at least {least}" if most is None else f"from {least} to {most}"
        raise AlbertError(
            f"`{name}` must be an integer, {limit}. Received: {value!r:.80}"
        )
    return int(value)


# === Labels ===


def as_label(value: Any) -> str | int | float:
    """Return a label as a plain value: a number, or a string for all other types."""
    is_scalar = getattr(value, "shape", None) == ()
    value = np.asarray(value).item() if is_scalar else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "ignore")
    return value if isinstance(value, (int, float)) else str(value)


def class_positions(values: Any, labels: Sequence, name: str = "y") -> np.ndarray:
    """Return the position among `labels` of each value, int64 [values].

    Values are found by equality, as in scikit-learn, and strings also by the name of a
    label. If all labels are strings, numbers are positions, unless they may be names.

    Raises:
        AlbertError: if a value is missing or not among the labels, or if numbers have
            two readings.
    """
    given = complete(as_list(values, name), name)
    values = [as_label(value) for value in given]
    are_names = {isinstance(value, str) for value in values}
    if True not in are_names and all(isinstance(label, str) for label in labels):
        spelled = {str(label).lower() for label in labels}
        are_bools = bool(values) and all(isinstance(x, bool) for x in values)
        if are_bools and spelled != {"true", "false"}:
            raise AlbertError(
                f"`{name}` holds booleans, but the classes are "
                f"{listed(labels, _SHOWN)}. Pass "
                "the names of the classes."
            )
        check_one_reading(labels, name, values)
        return check_positions(values, len(labels), name)
    known = {str(label): position for position, label in enumerate(labels)}
    if False in are_names:
        # A number never equals a string.
        known |= {label: position for position, label in enumerate(labels)}
    unknown = list(dict.fromkeys(value for value in values if value not in known))
    if unknown:
        hint = ""
        if any(is_container(x) for x in given):
            hint = _SEVERAL.format(name=name)
        elif mark := several_in(unknown, "|,;、，；"):
            hint = _SEVERAL.format(name=f"[value.split({mark!r}) for value in {name}]")
        raise AlbertError(
            f"The labels {listed(unknown, _SHOWN)} of `{name}` are not among the "
            f"classes {listed(labels, _SHOWN)}.{hint}"
        )
    return np.array([known[value] for value in values], "int64")


def check_positions(values: Any, num_classes: int, name: str = "y") -> np.ndarray:
    """Return class ids as an int64 array; raise if one is out of range."""
    ids = whole_numbers(values, name)
    if (wrong := np.flatnonzero((ids < 0) | (ids >= num_classes))).size:
        raise AlbertError(
            f"`{name}` must lie between 0 and num_classes - 1, that is "
            f"{num_classes - 1}. Element {wrong[0]} is {ids[wrong[0]]}."
        )
    return ids


def whole_numbers(values: Any, name: str = "y") -> np.ndarray:
    """Return class ids as an int64 array; raise if one is not a whole number."""
    values = complete(as_list(values, name), name)
    for i, value in enumerate(values):
        is_number = isinstance(value, (int, float, np.number))
        if not is_number or not float(value).is_integer():
            raise AlbertError(
                f"`{name}` must be one class id per text, counted from 0, or a name "
                "among the `labels=` that the model was built with. For one-hot rows "
                'pass `y.argmax(axis=1)`, or compile with loss="categorical_'
                f'crossentropy". Element {i} is {value!r:.80}.'
            )
    return np.array(values, "int64")


def has_two_readings(labels: Sequence) -> bool:
    """Return whether a number may be the name of one class and the id of another."""
    return any(
        isinstance(x, str) and number_of(x) not in (None, i)
        for i, x in enumerate(labels)
    )


def check_one_reading(labels: Sequence, name: str, values: Sequence = ()) -> None:
    """Raise if numbers could be names of classes as well as their positions."""
    if not has_two_readings(labels):
        return
    ids = {
        number: i for i, x in enumerate(labels) if (number := number_of(x)) is not None
    }
    value = next(x for x in (*values, *ids) if ids.get(x) != x)
    readings = ids.get(value), value if value in range(len(labels)) else None
    by_name, by_position = (
        "none of them" if i is None else repr(labels[int(i)]) for i in readings
    )
    raise AlbertError(
        f"`{name}` holds numbers, but the classes are named "
        f"{listed(labels, _SHOWN)}: "
        f"{value!r} is {by_name} by its name, and {by_position} by its position. Pass "
        "strings for names, [str(value) for value in y], or for positions [labels[i] "
        "for i in y]."
    )


def number_of(label: Any) -> int | float | None:
    """Return a number, or that which a name spells; `None` for other names."""
    label = label.lower() if isinstance(label, str) else label
    try:
        number = float({"true": 1, "false": 0}.get(label, label))
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
