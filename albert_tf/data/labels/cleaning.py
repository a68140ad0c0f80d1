"""Clean the labels of a file, and warn of what was changed or is in doubt."""

from __future__ import annotations

import functools
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_label, is_missing, number_of

# The label of a cell, the labels of a list, or `None` where it is missing.
Label = str | tuple[str, ...] | None
# The places of each label in a file, such as "Line 3 of a.tsv".
_Places = dict[str, list[str]]

# Names that programs write in place of a missing value.
_MISSING_NAMES = {"nan", "none", "null", "n/a", "na", "<na>", "nat"}
# Errors of formulas in Excel.
_MISSING_NAMES |= {"#n/a", "#value!", "#ref!", "#name?", "#div/0!", "#num!", "#null!"}
_WHOLE = re.compile(r"(-?\d+)\.0+")
# Invisible parts of emoji.
_JOINERS = re.compile("[\u200c\u200d\U000e0020-\U000e007f]")


class ListedLabel(str):
    """The only label of a list in JSON, which no separator splits."""

    __slots__ = ()


@functools.lru_cache(maxsize=2**14)
def visible(name: str) -> str:
    """Return a name without invisible characters, white space at its ends and NBSP.

    >>> visible("\\ufeff差评\\u200b")
    '差评'
    """
    kept = map(_visible_character, unicodedata.normalize("NFC", name))
    return "".join(kept).strip(" \n\u3000\u200c\u200d")


def _visible_character(character: str) -> str:
    """Return a character, a space for a kind of space, or nothing."""
    if character in "\n\u3000":
        return character
    category = unicodedata.category(character)
    if character == "\t" or category == "Zs":
        return " "
    is_invisible = category in ("Cc", "Cf") and not _JOINERS.match(character)
    return "" if is_invisible else character


def clean_labels(cells: Sequence[object], places: Sequence[str]) -> list[Label]:
    """Return the labels of cells; warn of those that are cleaned or may be missing.

    The labels of a list are a tuple, and the only label of a list a `ListedLabel`.

    Raises:
        AlbertError: if a cell is not a label or a list of labels. Names the place.
    """
    labels = [_parse_cell(*pair) for pair in zip(cells, places, strict=True)]
    clean = _clean_names(_places_of(labels, places))
    return [_with_names(label, clean) for label in labels]


def clean_spans(
    spans: list[list[tuple[int, int, str]]],
) -> list[list[tuple[int, int, str]]]:
    """Return spans with visible labels; warn of those that were cleaned."""
    places: _Places = {}
    for number, text_spans in enumerate(spans, start=1):
        for _, _, label in text_spans:
            places.setdefault(label, []).append(f"text {number}")
    clean = {label: visible(label) for label in places}
    changed = {label: name for label, name in clean.items() if label != name}
    _warn("with invisible characters are read as", changed, places)
    _warn_of_spellings(clean.values())
    return [
        [(start, end, clean[label]) for start, end, label in text_spans]
        for text_spans in spans
    ]


# === Steps ===


def _parse_cell(cell: object, place: str) -> Label:
    if is_missing(cell):
        return None
    if not isinstance(cell, (list, tuple, np.ndarray)):
        return _parse_name(cell, place)
    names = tuple(_parse_name(value, place) for value in cell)
    return ListedLabel(names[0]) if len(names) == 1 else names


def _parse_name(value: object, place: str) -> str:
    if is_missing(value) or isinstance(value, (dict, list, tuple, np.ndarray)):
        raise AlbertError(
            f"{place} has the label {value!r}. Expected a string, a number or a list "
            "of these."
        )
    label = as_label(value)
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if is_whole else label)


def _places_of(labels: Sequence[Label], places: Sequence[str]) -> _Places:
    """Return the places of each distinct name, those in lists, too."""
    found: _Places = {}
    for label, place in zip(labels, places, strict=True):
        names = (label,) if isinstance(label, str) else label or ()
        for name in names:
            found.setdefault(str(name), []).append(place)
    return found


def _clean_names(places: _Places) -> dict[str, str | None]:
    """Return the clean name of each name of a file, `None` if it is missing."""
    clean = {name: visible(name) for name in places}
    changed = {
        name: shown for name, shown in clean.items() if shown != name.strip(" \t\r\n")
    }
    _warn("with invisible characters are read as", changed, places)
    whole = _whole_numbers(clean)
    _warn("are read as", whole, places)
    clean.update(whole)
    _warn_of_spellings(clean.values())
    unlikely = {
        name: shown for name, shown in clean.items() if shown.lower() in _MISSING_NAMES
    }
    others = [shown for name, shown in clean.items() if shown and name not in unlikely]
    numbers = [number_of(shown) for shown in others]
    if numbers and None not in numbers:
        # Beside numbers, NaN is no name.
        return {name: None if name in unlikely else clean[name] for name in clean}
    _warn("are taken for a class, and not for missing:", unlikely, places)
    return dict(clean)


def _with_names(label: Label, clean: dict[str, str | None]) -> Label:
    """Return a label with the clean names."""
    if isinstance(label, tuple):
        # In a list, names of missing values stay.
        return tuple(clean[name] or visible(name) for name in label)
    if label is None:
        return None
    name = clean[label]
    is_listed = isinstance(label, ListedLabel) and name is not None
    return ListedLabel(name) if is_listed else name


def _whole_numbers(clean: dict[str, str]) -> dict[str, str]:
    """Return names such as "1.0" that mean the class "1"."""
    names = set(clean.values()) - {""}
    are_whole = all(isinstance(number_of(name), int) for name in names)
    whole = {}
    for name, shown in clean.items():
        match = _WHOLE.fullmatch(shown)
        if match and (are_whole or match[1] in names):
            whole[name] = match[1]
    return whole


def _warn(message: str, names: dict[str, str], places: _Places) -> None:
    """Warn of names, with their number, the first one and its place."""
    if not names:
        return
    first = next(iter(names))
    count = sum(len(places[name]) for name in names)
    warnings.warn(
        f"{count} labels such as {first!r} ({places[first][0]}) {message} "
        f"{names[first]!r}.",
        stacklevel=5,
    )


def _warn_of_spellings(names: Iterable[str]) -> None:
    """Warn of names that differ in case or width only."""
    same: dict[str, str] = {}
    for name in sorted(set(names)):
        key = unicodedata.normalize("NFKC", name).casefold()
        other = same.setdefault(key, name)
        if other != name:
            warnings.warn(
                f"The labels {other!r} and {name!r} are two classes. If they mean the "
                "same, write them alike.",
                stacklevel=4,
            )
