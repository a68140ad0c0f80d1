"""Several labels in a cell: `|` separates them, or the separator that is given."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from albert_tf.data.labels.cleaning import Label, ListedLabel, visible
from albert_tf_lite.errors import AlbertError, listed

LABEL_SEPARATOR = "|"
# They separate labels in files of other tools, and are parts of names in others.
OTHER_SEPARATORS = "#,，、;；/+&\\\n \u3000"
SEPARATORS = LABEL_SEPARATOR + OTHER_SEPARATORS
# They are parts of many names, such as "play music": single labels have them, too.
_IN_NAMES = "/+& \u3000"


class _Doubt(NamedTuple):
    """A label that may be several, its place, and the separator that it may have."""

    label: str
    place: str
    separator: str


def label_lists(
    labels: Sequence[Label],
    places: Sequence[str],
    separator: str | None = None,
    classes: Iterable | None = None,
) -> list[list[str]]:
    """Return the labels of each text; a list in JSON is never split.

    Without `separator`, a warning names a label that may be several, separated by
    another character than "|".

    Args:
        labels: as of `clean_labels`.
        places: list of strings such as "Line 3 of a.tsv".
        separator: optional string. By default "|".
        classes: optional list of strings or numbers. A label among them is not split.

    Raises:
        AlbertError: if a label is missing or not among the classes. Names the place.
    """
    for label, place in zip(labels, places, strict=True):
        if label is None:
            raise AlbertError(f"{place} has no label. Expected some, or an empty cell.")
    mark = LABEL_SEPARATOR if separator is None else separator
    if classes is not None:
        return _lists_of_classes(labels, places, mark, set(map(str, classes)))
    names = [split_label(label, mark) for label in labels]
    if separator is None:
        _warn_of_other_separators(labels, places, names)
    return names


def check_single(labels: Sequence[Label], places: Sequence[str]) -> None:
    """Raise for a list of labels; warn if one looks like several, as "体育,娱乐".

    Such a label has a separator, and each name between it is also in another label.
    """
    for label, place in zip(labels, places, strict=True):
        if isinstance(label, tuple):
            raise AlbertError(
                f"{place} has the labels {list(label)}. Expected one label per text. "
                "For several use finetune --task multi-label, or the method "
                "`label_lists`."
            )
    doubt = _recurring_parts(labels, places)
    if doubt is not None:
        warnings.warn(
            f"Labels such as {doubt.label!r} ({doubt.place}) look like several, "
            f"separated by {doubt.separator!r}. They are read as one class each. "
            "To learn several per text, pass --task multi-label and "
            f"--label-separator {doubt.separator!r} to finetune.",
            stacklevel=3,
        )


def split_label(label: Label, separator: str) -> list[str]:
    """Return the names between separators; those of a list, and none of `None`."""
    if label is None:
        return []
    if isinstance(label, tuple):
        names = list(label)
    elif isinstance(label, ListedLabel) or not separator:
        names = [str(label)]
    else:
        names = [visible(name) for name in label.split(separator)]
    return [name for name in names if name]


def _lists_of_classes(
    labels: Sequence[Label],
    places: Sequence[str],
    separator: str,
    classes: set[str],
) -> list[list[str]]:
    """Return the labels of each text; raise if one is not among the classes."""
    lists = []
    for label, place in zip(labels, places, strict=True):
        is_class = isinstance(label, str) and label in classes
        names = split_label(label, "" if is_class else separator)
        if not classes.issuperset(names):
            raise AlbertError(
                f"{place} has the labels {label!r}. Expected some of the classes "
                f"{listed(sorted(classes), 10)}, separated by {separator!r}. Name "
                "another separator with `separator=`."
            )
        lists.append(names)
    return lists


# === Doubts ===


def _recurring_parts(labels: Sequence[Label], places: Sequence[str]) -> _Doubt | None:
    """Return the first label between whose separators are names of other labels."""
    distinct = {label for label in labels if isinstance(label, str)}
    for mark in SEPARATORS:
        if mark in _IN_NAMES or not any(mark in label for label in distinct):
            continue
        counts = collections.Counter(
            name for label in distinct for name in set(split_label(label, mark))
        )
        for label, place in zip(labels, places, strict=True):
            names = split_label(label, mark)
            if len(names) > 1 and all(counts[name] > 1 for name in names):
                return _Doubt(str(label), place, mark)
    return None


def _warn_of_other_separators(
    labels: Sequence[Label], places: Sequence[str], lists: list[list[str]]
) -> None:
    """Warn of a label that has another separator than "|".

    Where "|" separates labels of the file, the other one is a part of names, unless
    each name between it is a class of the file.
    """
    classes = {name for names in lists for name in names}
    has_several = any(
        len(names) > 1
        for label, names in zip(labels, lists, strict=True)
        if isinstance(label, str)
    )
    for label, place, names in zip(labels, places, lists, strict=True):
        if not isinstance(label, str) or isinstance(label, ListedLabel):
            continue
        for name in names:
            mark = _separator_in(name, classes if has_several else None)
            if mark is not None:
                _warn(_Doubt(name, place, mark), has_several)
                return


def _separator_in(name: str, classes: set[str] | None) -> str | None:
    """Return the first separator in a name, if given one between classes."""
    for mark in OTHER_SEPARATORS:
        if mark not in name:
            continue
        if classes is None or classes.issuperset(split_label(name, mark)):
            return mark
    return None


def _warn(doubt: _Doubt, has_several: bool) -> None:
    reason = "" if has_several else ", and no text has several"
    warnings.warn(
        f"Labels such as {doubt.label!r} ({doubt.place}) are one class each{reason}, "
        f"because {LABEL_SEPARATOR!r} separates labels. If they are several, "
        f"{split_label(doubt.label, doubt.separator)}, pass {doubt.separator!r} as "
        f"`separator=`. If each is one name, pass {LABEL_SEPARATOR!r}.",
        stacklevel=5,
    )
