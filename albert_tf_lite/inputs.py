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
# Names that are those of numbers, too.
_BOOLEANS = {"true": 1, "false": 0}
# The most labels that an error shows.
_SHOWN = 10


def as_list(values: object, name: str = "values") -> list:
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
    listed_values = _converted(values)
    is_ordered = isinstance(listed_values, Iterable) and not isinstance(
        listed_values, (str, bytes, Mapping, Set)
    )
    if not is_ordered:
        raise AlbertError(
            f"`{name}` should be a list, an array, a Series or one column. Received a "
            f"{kind.__name__}: {values!r:.80}{_remedy(values, name)}"
        )
    return list(listed_values)


def _converted(values: Any) -> Any:
    """Return a container of a library as a list of plain values, others as they are."""
    # SciPy's sparse matrices.
    if hasattr(type(values), "toarray"):
        values = values.toarray()
    for method in _TO_LIST:
        if hasattr(type(values), method):
            return getattr(values, method)()
    if hasattr(type(values), "__array__"):
        return np.asarray(values).tolist()
    return values


def _remedy(values: object, name: str) -> str:
    """Return a sentence with the line that makes a list of another container."""
    if isinstance(values, Set):
        return f". A set has no order: pass sorted({name}) if any order is right."
    if isinstance(values, Mapping):
        return f". Pass list({name}.values()) if its order is right."
    return ""


def as_texts(values: object, name: str = "texts") -> list:
    """Return strings, or lists of strings, in any container as lists of `str`."""
    texts = as_list(values, name)
    if all(type(text) is str for text in texts):
        return texts
    return [_as_text(text, name, i) for i, text in enumerate(texts)]


def _as_text(value: object, name: str, position: int) -> str | list:
    """Return a string, or a list of strings, of any type; raise for other values."""
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


def is_missing(value: object) -> bool:
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


def is_container(value: object) -> bool:
    """Return whether a value is a list, tuple, set or array of several axes."""
    is_array = getattr(value, "ndim", 0) > 0
    return is_array or isinstance(value, (list, tuple, Set))


def several_in(values: Iterable, separators: str) -> str | None:
    """Return the first separator that a string among the values has, if any."""
    strings = [value for value in values if isinstance(value, str)]
    return next((x for x in separators if any(x in text for text in strings)), None)


def check_integer(
    name: str, value: object, least: int = 1, most: int | None = None
) -> int:
    """Return an integer, also one of NumPy, as `int`; raise if it is out of range."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    limit = f"at least {least}" if most is None else f"from {least} to {most}"
    raise AlbertError(f"`{name}` must be an integer, {limit}. Received: {value!r:.80}")


# === Labels ===


def as_label(value: object) -> str | int | float:
    """Return a label as a plain value: a number, or a string for all other types."""
    is_scalar = getattr(value, "shape", None) == ()
    value = np.asarray(value).item() if is_scalar else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "ignore")
    return value if isinstance(value, (int, float)) else str(value)


def class_positions(values: Iterable, labels: Sequence, name: str = "y") -> np.ndarray:
    """Return the position among `labels` of each value, int64 [values].

    Values are found by equality, as in scikit-learn, and strings also by the name of a
    label. If all labels are strings, numbers are positions, unless they may be names.

    Raises:
        AlbertError: if a value is missing or not among the labels, or if numbers have
            two readings.
    """
    given = complete(as_list(values, name), name)
    plain = [as_label(value) for value in given]
    has_names = any(isinstance(value, str) for value in plain)
    has_numbers = not all(isinstance(value, str) for value in plain)
    if not has_names and all(isinstance(label, str) for label in labels):
        spelled = {str(label).lower() for label in labels}
        are_bools = bool(plain) and all(isinstance(value, bool) for value in plain)
        if are_bools and spelled != {"true", "false"}:
            raise AlbertError(
                f"`{name}` holds booleans, but the classes are "
                f"{listed(labels, _SHOWN)}. Pass the names of the classes."
            )
        check_one_reading(labels, name, plain)
        return check_positions(plain, len(labels), name)
    positions: dict[Any, int] = {str(label): i for i, label in enumerate(labels)}
    if has_numbers:
        # A number never equals a string.
        positions.update({label: i for i, label in enumerate(labels)})
    unknown = list(dict.fromkeys(value for value in plain if value not in positions))
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
    return np.array([positions[value] for value in plain], "int64")


def check_positions(values: Iterable, num_classes: int, name: str = "y") -> np.ndarray:
    """Return class ids as an int64 array; raise if one is out of range."""
    ids = whole_numbers(values, name)
    wrong = np.flatnonzero((ids < 0) | (ids >= num_classes))
    if wrong.size:
        raise AlbertError(
            f"`{name}` must lie between 0 and num_classes - 1, that is "
            f"{num_classes - 1}. Element {wrong[0]} is {ids[wrong[0]]}."
        )
    return ids


def whole_numbers(values: Iterable, name: str = "y") -> np.ndarray:
    """Return class ids as an int64 array; raise if one is not a whole number."""
    ids = complete(as_list(values, name), name)
    for i, value in enumerate(ids):
        is_number = isinstance(value, (int, float, np.number))
        if not is_number or not float(value).is_integer():
            raise AlbertError(
                f"`{name}` must be one class id per text, counted from 0, or a name "
                "among the `labels=` that the model was built with. For one-hot rows "
                'pass `y.argmax(axis=1)`, or compile with loss="categorical_'
                f'crossentropy". Element {i} is {value!r:.80}.'
            )
    return np.array(ids, "int64")


def has_two_readings(labels: Sequence) -> bool:
    """Return whether a number may be the name of one class and the id of another."""
    for position, label in enumerate(labels):
        if isinstance(label, str) and number_of(label) not in (None, position):
            return True
    return False


def check_one_reading(labels: Sequence, name: str, values: Sequence = ()) -> None:
    """Raise if numbers could be names of classes as well as their positions."""
    if not has_two_readings(labels):
        return
    # The class that each number names.
    ids = {number_of(label): i for i, label in enumerate(labels)}
    ids.pop(None, None)
    value = next(x for x in (*values, *ids) if ids.get(x) != x)
    by_name = by_position = "none of them"
    if value in ids:
        by_name = repr(labels[ids[value]])
    if value in range(len(labels)):
        by_position = repr(labels[int(value)])
    raise AlbertError(
        f"`{name}` holds numbers, but the classes are named "
        f"{listed(labels, _SHOWN)}: "
        f"{value!r} is {by_name} by its name, and {by_position} by its position. Pass "
        "strings for names, [str(value) for value in y], or for positions [labels[i] "
        "for i in y]."
    )


def number_of(label: str | float) -> int | float | None:
    """Return a number, or that which a name spells; `None` for other names."""
    if isinstance(label, str) and label.lower() in _BOOLEANS:
        label = _BOOLEANS[label.lower()]
    try:
        number = float(label)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
