"""Find the columns of a file without a header by their number.

Two columns are a text and its label, in either order: the label has fewer distinct
values. Three are two texts and their label, a number. Tasks without labels have one
column for each part of an example, and a single text may stand beside numbers or codes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import number_of

# A number, a date or a time, such as "2024-01-01 08:00" or "3月5日".
_UNITS = "年月日号时点分秒天岁元块%$¥￥"
_NUMBER = re.compile(rf"(?=.*\d)[\d\s:/.,TZ+()\-−~{_UNITS}]+")
# Also a code, such as "A001", or an address.
_PLAIN = re.compile(rf"\s*|{_NUMBER.pattern}|(?=.*\d)[!-~]+|(https?:|www\.)\S+|\S+@\S+")

# The expected columns by the roles that are read, for errors.
_FORMS = {
    frozenset(("label", "text")): "a text and its label, or two texts and their label",
    frozenset(("text",)): "one text, perhaps beside its label or its number",
    frozenset(("text", "text_b")): "two texts, or two texts and their label",
}


def unnamed_columns(
    path: str | os.PathLike,
    columns: Sequence[Sequence[str]],
    given: Mapping[str, int],
    roles: Sequence[str],
) -> dict[str, int]:
    """Return the columns of roles in a file without a header.

    Args:
        path: path of the file, for errors.
        columns: list of lists, the cells of each column.
        given: dict, the columns of some roles, which were numbered.
        roles: list of strings, such as "label" and "text".

    Returns:
        A dict of the given columns and of others, those of `roles` and perhaps a label
        or a second text beside them.

    Raises:
        AlbertError: if the file has another number of columns, or what they hold is in
            doubt. Shows the first row.
    """
    if given:
        return {**given, **_others(path, columns, given, roles)}
    wanted = set(roles)
    count = len(columns)
    if "label" in wanted and count == 1:
        raise AlbertError(
            f"{path} has one column. Expected a label and a text, separated by tabs, "
            "in .csv files by commas."
        )
    if wanted == {"text"} and count == 2:
        return _text_beside_another(path, columns)
    if wanted == {"label", "text"} and count == 2:
        return _text_and_label(path, columns, roles)
    if wanted in ({"label", "text"}, {"text", "text_b"}) and count == 3:
        return _labelled_pair(path, columns)
    if count != len(roles) or "label" in wanted:
        raise _unknown_form(path, columns, roles)
    positions = {role: position for position, role in enumerate(roles)}
    if count > 1:
        _check_texts(path, columns, positions)
        _check_first_row(path, columns, None)
    return positions


def header_doubt(columns: Sequence[Sequence[str]], label: int | None) -> str:
    """Return why the first row may be a header of unknown names; "" if it is none.

    It has a name above numbers only, or a label that is no number and that no other row
    has.
    """
    if label is not None and _is_first_unique(columns[label]):
        return f"no other line has the label {columns[label][0]!r}"
    for number, cells in enumerate(columns, start=1):
        if _is_name_above_numbers(cells):
            return f"column {number} has numbers below {cells[0]!r:.40}"
    return ""


# === Forms ===


def _others(
    path: str | os.PathLike,
    columns: Sequence[Sequence[str]],
    given: Mapping[str, int],
    roles: Sequence[str],
) -> dict[str, int]:
    """Return the columns that are left for the roles that were not numbered."""
    missing = [role for role in roles if role not in given]
    free = [i for i in range(len(columns)) if i not in given.values()]
    if missing and len(missing) != len(free):
        raise _unknown_form(path, columns, roles)
    return dict(zip(missing, free, strict=False))


def _text_beside_another(
    path: str | os.PathLike, columns: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Return the column of texts beside one of numbers or codes, or of labels."""
    texts = [i for i, cells in enumerate(columns) if not _is_plain(cells)]
    if len(texts) != 1:
        return _text_and_label(path, columns, ("text",))
    _check_first_row(path, columns, None)
    return {"text": texts[0]}


def _text_and_label(
    path: str | os.PathLike, columns: Sequence[Sequence[str]], roles: Sequence[str]
) -> dict[str, int]:
    """Return the columns of texts and labels: these have fewer distinct values."""
    first, second = (len(set(cells)) for cells in columns)
    if first == second:
        numbered = " and ".join(f"`{role}=`" for role in roles)
        raise AlbertError(
            f"{path} has no header, and its two columns have {first} distinct values "
            "each. A label should have fewer than the text. Number the columns with "
            f"{numbered}. {shown_row(columns)}"
        )
    found = {"text": 1, "label": 0} if first < second else {"text": 0, "label": 1}
    _check_texts(path, columns, found)
    _check_first_row(path, columns, found["label"])
    return found


def _labelled_pair(
    path: str | os.PathLike, columns: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Return the columns of two texts and their label, numbers of the fewest values."""
    first, second, labels = (len(set(cells)) for cells in columns)
    are_numbers = None not in map(number_of, columns[2])
    if not (are_numbers and 1 < labels < min(first, second)):
        raise AlbertError(
            f"{path} has no header, and its three columns have {first}, {second} and "
            f"{labels} distinct values. Expected two texts and their label, numbers of "
            "the fewest values. Number the columns with `label=`, `text=` and, for "
            f"pairs, `text_b=`. {shown_row(columns)}"
        )
    found = {"text": 0, "text_b": 1, "label": 2}
    _check_texts(path, columns, found)
    _check_first_row(path, columns, found["label"])
    return found


# === Checks ===


def _check_texts(
    path: str | os.PathLike,
    columns: Sequence[Sequence[str]],
    found: Mapping[str, int],
) -> None:
    """Raise if a text would be a column of numbers, dates, codes or addresses only."""
    for role, position in found.items():
        if role != "label" and _is_plain(columns[position]):
            raise AlbertError(
                f"{path} has no header, and column {position + 1} would be the "
                f"{role}. It has numbers, dates, codes or addresses only. Number the "
                f"columns to read, such as the text with `text=`. {shown_row(columns)}"
            )


def _check_first_row(
    path: str | os.PathLike, columns: Sequence[Sequence[str]], label: int | None
) -> None:
    """Raise if the first row may be a header."""
    if reason := header_doubt(columns, label):
        raise AlbertError(
            f"The first line of {path} may be a header: {reason}. Name its columns "
            "with `label=` and `text=` or, if it is an example, number them. "
            f"{shown_row(columns)}"
        )


def _is_plain(cells: Sequence[str]) -> bool:
    """Return whether all cells are numbers, dates, codes or addresses."""
    return all(map(_PLAIN.fullmatch, cells))


def _is_first_unique(labels: Sequence[str]) -> bool:
    first, *others = labels
    return first not in others and not _PLAIN.fullmatch(first)


def _is_name_above_numbers(cells: Sequence[str]) -> bool:
    first, *others = cells
    is_name = not _PLAIN.fullmatch(first)
    return is_name and bool(others) and all(map(_NUMBER.fullmatch, others))


def _unknown_form(
    path: str | os.PathLike, columns: Sequence[Sequence[str]], roles: Sequence[str]
) -> AlbertError:
    form = _FORMS.get(frozenset(roles), ", ".join(roles))
    remedy = "Write a header with their names"
    if "text" in roles:
        remedy += ", or number the columns to read, such as the text with `text=`"
    return AlbertError(
        f"{path} has no header and {len(columns)} columns. Expected {form}. {remedy}. "
        f"{shown_row(columns)}"
    )


def shown_row(columns: Sequence[Sequence[str]]) -> str:
    """Return a sentence that shows the first row."""
    cells = listed([f"{cells[0]:.40}" for cells in columns], 10)
    return f"Its first row is {cells}."
