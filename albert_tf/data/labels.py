"""Labels in files: their cleaning, the names of classes, several labels in a cell."""

from __future__ import annotations

import collections
import functools
import itertools
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import (
    as_label,
    as_list,
    is_container,
    is_missing,
    number_of,
)

# The label of a cell, the labels of a list, or `None` where it is missing.
Label = str | tuple[str, ...] | None

# The separator of several labels. The others are found by the data, and announced.
LABEL_SEPARATOR = "|"
SEPARATORS = "|#,，、;；/+&\\\n \u3000"
# Separators that one file may mix.
_MIXED = (",，", ",，、", ";；")
# These are parts of many names, such as "play music".
_INNER = "/+& \u3000"
# The share of the names that must occur alone or in several combinations. Of the names
# in "体育/足球" and "体育/篮球", a third does.
_LEAST_RECURRING = 0.75
# Names that programs write in place of a missing value.
_MISSING_NAMES = {"nan", "none", "null", "n/a", "na", "<na>", "nat"}
# Errors of formulas in Excel.
_MISSING_NAMES |= {"#n/a", "#value!", "#ref!", "#name?", "#div/0!", "#num!", "#null!"}
_WHOLE = re.compile(r"(-?\d+)\.0+")
# Invisible parts of emoji.
_JOINERS = re.compile("[\u200c\u200d\U000e0020-\U000e007f]")


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
    names = {as_label(x) for x in values if not is_missing(x)} - {""}
    numbers: dict[Any, Any] = {x: number_of(x) for x in names}
    are_numbers = None not in numbers.values()
    return sorted(names, key=numbers.__getitem__ if are_numbers else str)


# === Cleaning ===


@functools.lru_cache(maxsize=2**14)
def visible(name: str) -> str:
    """Return a name without invisible characters, white space at its ends and NBSP.

    >>> visible("\\ufeff差评\\u200b")
    '差评'
    """
    kept = (
        " " if x == "\t" or (x != "\u3000" and unicodedata.category(x) == "Zs") else x
        for x in unicodedata.normalize("NFC", name)
        if x in "\t\n"
        or unicodedata.category(x) not in ("Cc", "Cf")
        or _JOINERS.match(x)
    )
    return "".join(kept).strip(" \n\u3000\u200c\u200d")


def clean_labels(cells: Sequence[Any], places: Sequence[str]) -> list[Label]:
    """Return the labels of cells; warn of those that are cleaned or may be missing.

    The labels of a list are a tuple; a single one is a string if nothing can split it.

    Raises:
        AlbertError: if a cell is not a label or a list of labels. Names the place.
    """
    labels = [_parse_cell(*row) for row in zip(cells, places, strict=True)]
    found: dict[str, list[str]] = {}
    for label, place in zip(labels, places, strict=True):
        for name in (label,) if isinstance(label, str) else label or ():
            found.setdefault(name, []).append(place)
    clean = {name: visible(name) for name in found}
    changed = {x: y for x, y in clean.items() if y != x.strip(" \t\r\n")}
    _warn("with invisible characters are read as", changed, found)
    whole = _whole_numbers(clean)
    _warn("are read as", whole, found)
    clean |= whole
    _warn_of_spellings(clean.values())
    unlikely = {x: y for x, y in clean.items() if y.lower() in _MISSING_NAMES}
    numbers = [number_of(y) for x, y in clean.items() if y and x not in unlikely]
    if numbers and None not in numbers:
        # Beside numbers, NaN is no name.
        labels = [None if x in unlikely else x for x in labels]
    else:
        _warn("are taken for a class, and not for missing:", unlikely, found)
    return [
        tuple(clean[name] for name in x) if isinstance(x, tuple) else x and clean[x]
        for x in labels
    ]


def _parse_cell(cell, place):
    if is_missing(cell):
        return None
    if not isinstance(cell, (list, tuple, np.ndarray)):
        return _parse_name(cell, place)
    names = tuple(_parse_name(x, place) for x in cell)
    is_one = len(names) == 1 and not any(x in names[0] for x in SEPARATORS)
    return names[0] if is_one else names


def _parse_name(value, place):
    if is_missing(value) or isinstance(value, (dict, list, tuple, np.ndarray)):
        raise AlbertError(
            f"{place} has the label {value!r}. Expected a string, a number or a list "
            "of these."
        )
    value = as_label(value)
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def _whole_numbers(clean):
    """Return names such as "1.0" that mean the class "1"."""
    names = set(clean.values()) - {""}
    are_whole = all(isinstance(number_of(name), int) for name in names)
    found = {x: _WHOLE.fullmatch(name) for x, name in clean.items()}
    return {x: m[1] for x, m in found.items() if m and (are_whole or m[1] in names)}


def _warn(message, names, places):
    """Warn of names, with their number, the first one and its place."""
    if names:
        first, count = next(iter(names)), sum(len(places[x]) for x in names)
        warnings.warn(
            f"{count} labels such as {first!r} ({places[first][0]}) {message} "
            f"{names[first]!r}.",
            stacklevel=5,
        )


def _warn_of_spellings(names):
    """Warn of names that differ in case or width only."""
    same: dict[str, str] = {}
    for name in sorted(set(names)):
        key = unicodedata.normalize("NFKC", name).casefold()
        if (other := same.setdefault(key, name)) != name:
            warnings.warn(
                f"The labels {other!r} and {name!r} are two classes. If they mean the "
                "same, write them alike.",
                stacklevel=4,
            )


def clean_spans(spans: list[list[tuple]]) -> list[list[tuple]]:
    """Return spans with visible labels; warn of those that were cleaned."""
    places = collections.defaultdict(list)
    for i, row in enumerate(spans, 1):
        for *_, label in row:
            places[label].append(f"text {i}")
    clean = {label: visible(label) for label in places}
    changed = {x: y for x, y in clean.items() if x != y}
    _warn("with invisible characters are read as", changed, places)
    _warn_of_spellings(clean.values())
    return [[(*place, clean[label]) for *place, label in row] for row in spans]


def without_headers(
    header: Sequence[str], rows: Iterable[tuple[str, Any]]
) -> list[tuple[str, Any]]:
    """Leave out, with a warning, rows (place, cells) that repeat the header.

    Files that were joined have such rows.
    """
    names, kept, places = [visible(name).lower() for name in header], [], []
    for place, cells in rows:
        if _repeats(names, cells):
            places.append(place)
        else:
            kept.append((place, cells))
    if places:
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        warnings.warn(
            f"The header is repeated: {', '.join(places[:3])}{more}. Skipped.",
            stacklevel=4,
        )
    return kept


def _repeats(names, cells):
    # Nearly all rows differ in the first cell, which is compared without cleaning.
    if not names or not str(cells[0]).strip().lower().endswith(names[0]):
        return False
    return [visible(str(cell)).lower() for cell in cells] == names


# === Several labels in a cell ===


def label_lists(
    labels: Sequence[Label],
    places: Sequence[str],
    separator: str | None = None,
    classes: Iterable | None = None,
) -> list[list[str]]:
    """Return the labels of each text; a list in JSON is never split.

    Args:
        labels: as of `clean_labels`.
        places: list of strings such as "Line 3 of a.tsv".
        separator: optional string. By default "|", and with a warning another one, if
            nearly all names between it occur alone or in several combinations.
        classes: optional list of strings or numbers. A label among them is not split;
            all others are split into some of them, by any separator if none is given.

    Raises:
        AlbertError: if a label is missing or not among the classes. Names the place.
    """
    for label, place in zip(labels, places, strict=True):
        if label is None:
            raise AlbertError(f"{place} has no label. Expected some, or an empty cell.")
    if classes is not None:
        known = set(map(str, classes))
        rows = zip(labels, places, strict=True)
        return [_split_into_classes(*row, separator, known) for row in rows]
    if separator is not None:
        return [_split(label, separator, whole=True) for label in labels]
    separators = find_separators(labels)
    names = [_split(label, separators) for label in labels]
    _announce(labels, places, names, separators)
    return names


def check_single(labels: Sequence[Label], places: Sequence[str]) -> None:
    """Raise for a list of labels; warn if one looks like several, as "体育,娱乐"."""
    found = [x for x in SEPARATORS if x not in _INNER and _separates(x, set(labels))]
    for label, place in zip(labels, places, strict=True):
        if isinstance(label, tuple):
            raise AlbertError(
                f"{place} has the labels {list(label)}. Expected one label per text. "
                "For several use finetune --task multi-label, or the method "
                "`label_lists`."
            )
        if found and isinstance(label, str) and found[0] in label:
            warnings.warn(
                f"Labels such as {label!r} ({place}) look like several, separated by "
                f"{found[0]!r}. finetune --task multi-label learns them one by one.",
                stacklevel=3,
            )
            return


def find_separators(labels: Iterable[Label]) -> str:
    """Return the separators of labels, several characters if the file mixes them."""
    distinct = set(labels)
    used = set("".join(x for x in distinct if isinstance(x, str)))
    others = used.intersection(SEPARATORS) - {LABEL_SEPARATOR}
    found = [x for x in SEPARATORS if x in others and _separates(x, distinct)]
    if not found:
        mixed = (x for x in _MIXED if others.intersection(x))
        found = [x for x in mixed if _separates(x, distinct)][:1]
    if LABEL_SEPARATOR in used:
        found.insert(0, LABEL_SEPARATOR)
    return "".join(found)


def _separates(separators, labels):
    """Return whether the names between separators are those of classes."""
    alone, combinations = set(), set()
    for label in labels:
        names = _split(label, separators)
        if len(names) > 1 and isinstance(label, str):
            combinations.add(tuple(names))
        else:
            alone.update(names)
    # A separator of words leaves others at their ends, as in "体育, 娱乐".
    is_space = not separators.strip()
    counts = collections.Counter(x for names in combinations for x in set(names))
    if is_space and any({x[0], x[-1]} & set(SEPARATORS) for x in counts):
        return False
    if len(set(map(len, combinations))) == 1 and not alone:
        # The parts of names, such as "价格 正面" and "服务 正面".
        columns = zip(*combinations, strict=True)
        if sum(len(set(column)) for column in columns) == len(counts):
            return False
    recurring = [x for x in counts if x in alone or counts[x] > 1]
    return bool(counts) and len(recurring) >= _LEAST_RECURRING * len(counts)


def _split(label, separators, whole=False):
    """Split a label at each of the characters, or at the `whole` string."""
    if not isinstance(label, str):
        return list(label or ())
    pattern = re.escape(separators) if whole else f"[{re.escape(separators)}]"
    names = map(visible, re.split(pattern, label) if separators else [label])
    return [name for name in names if name]


def _split_into_classes(label, place, separator, classes):
    """Return the classes that a label names, whole or between separators."""
    ways = [(x, False) for x in (*SEPARATORS, *_MIXED)]
    ways = [(separator, True)] if separator else ways
    options = [] if label in ("", *classes) else [_split(label, *way) for way in ways]
    if not isinstance(label, str) or not options:
        options = [_split(label, "")]
    for names in options:
        if classes.issuperset(names):
            return names
    raise AlbertError(
        f"{place} has the labels {label!r}. Expected some of the classes "
        f"{listed(sorted(classes), 10)}, separated by {separator or LABEL_SEPARATOR!r} "
        "(--label-separator, or `separator=` of `label_lists`)."
    )


def _announce(labels, places, names, separators):
    """Warn of separators other than "|", and of those that were not taken as such."""
    rows = list(zip(labels, places, names, strict=True))
    marks = separators.replace(LABEL_SEPARATOR, "")
    classes = class_names(itertools.chain(*names))
    message = (
        f"are several, separated by {marks!r}: {len(classes)} classes, "
        f"{', '.join(classes[:10])}. If each is one name, pass --label-separator '|'."
    )
    if not marks:
        if any(len(row) > 1 for label, _, row in rows if isinstance(label, str)):
            return
        marks = SEPARATORS
        message = (
            "are one class each, and no text has several. If they are several, pass "
            "--label-separator."
        )
    for label, place, _ in rows:
        if isinstance(label, str) and any(x in label for x in marks):
            warnings.warn(f"Labels such as {label!r} ({place}) {message}", stacklevel=4)
            return
