"""Labelled texts, or texts alone, of a table."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Sequence
from typing import Any

from albert_tf.data.labels import Label, clean_labels, label_lists
from albert_tf.data.tables import Table
from albert_tf_lite.errors import AlbertError, listed


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts or pairs of texts, and their labels.

    Attributes:
        x: list of strings, or a tuple of two lists for pairs.
        labels: list of strings; a tuple for a text with a list of labels, `None` for a
            missing label.
        places: list of strings such as "Line 3 of a.tsv".
    """

    x: list[str] | tuple[list[str], list[str]]
    labels: list[Label]
    places: list[str] = dataclasses.field(compare=False)

    @property
    def pairs(self) -> bool:
        """Return whether each example is a pair of texts."""
        return isinstance(self.x, tuple)

    def class_ids(self, classes: Sequence) -> list[int]:
        """Return the position of each label; raise if it is not one of the classes."""
        positions = {str(name): position for position, name in enumerate(classes)}
        expected = f"one of the classes {listed(classes, 10)}"
        return self._values(positions.__getitem__, expected)

    def label_lists(
        self, separator: str | None = None, classes: Sequence | None = None
    ) -> list[list[str]]:
        """Return the list of labels of each text; "体育|娱乐" has two, "" none.

        Args, raises: as `albert_tf.data.labels.label_lists`.
        """
        return label_lists(self.labels, self.places, separator, classes)

    def scores(self) -> list[float]:
        """Return the labels as numbers; raise if one is not a finite number."""
        expected = "a number. Name the column of the numbers with `label=`"
        return self._values(_number, expected)

    def without_invalid(self, classes: Sequence | None = None) -> LabelledTexts:
        """Leave out, with a warning, labels that are no classes (`None`: no numbers).

        Nothing is left out if no label is valid.
        """
        known = {str(name): name for name in classes or ()}
        convert = _number if classes is None else known.__getitem__
        values, message = self._converted(convert)
        kept = [i for i, value in enumerate(values) if value is not None]
        if len(kept) in (0, len(values)):
            return self
        warnings.warn(f"{message} Skipped.", stacklevel=2)
        parts = (*(self.x if self.pairs else (self.x,)), self.labels, self.places)
        x: Any
        *x, labels, places = ([part[i] for i in kept] for part in parts)
        return LabelledTexts(tuple(x) if self.pairs else x[0], labels, places)

    def _values(self, function, expected):
        values, message = self._converted(function)
        if None in values:
            raise AlbertError(
                f"{message} Expected {expected}. Correct them or leave them out "
                "(--skip-invalid of finetune and evaluate, or the method "
                "`without_invalid`)."
            )
        return values

    def _converted(self, function):
        """Return the values of the labels, `None` if invalid, and name those."""
        values, wrong = [], []
        for place, label in zip(self.places, self.labels, strict=True):
            try:
                values.append(function(label))
            except (KeyError, TypeError, ValueError):
                values.append(None)
                shown = "no label" if label is None else f"the label {label!r}"
                wrong.append(f"{place} has {shown}")
        count = f"{len(wrong)} labels are invalid: " if len(wrong) > 1 else ""
        more = f" and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        return values, f"{count}{', '.join(wrong[:10])}{more}."


def _number(label):
    if not math.isfinite(number := float(label)):
        raise ValueError
    return number


def read_labelled_texts(
    path: str | os.PathLike,
    label: str | int | None = None,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> LabelledTexts:
    """Read labelled texts.

    Labels lose invisible characters, and rows that repeat the header are skipped, with
    a warning. A missing label is `None`.

    Args:
        path: path of a `.tsv` or `.txt` file (tabs), a `.csv` file (commas or, with a
            warning, semicolons, tabs or bars; double quotes), a `.jsonl` or `.json`
            file (one JSON object per line, or a list of objects), an `.xlsx` or a
            `.parquet` file, also compressed. The header line is optional. Above it may
            be titles, rows of one cell.
        label, text, text_b: optional, the names of the columns or their numbers
            from 1. By default they are found by their names in the header (`label`,
            `text`, `text_a`, `text_b`, `sentence1`, ...) or, without a header, by
            their content.
        pairs: optional bool. Whether to expect pairs of texts or single texts.
        encoding: optional string, such as `"big5"`. By default UTF-8 or, with a
            warning, the likeliest by the first megabyte.
        sheet: optional string, the name of a sheet of an `.xlsx` file. By default the
            first visible one that has cells.

    Returns:
        A `LabelledTexts`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is empty or has another encoding, rows of different
            lengths or no such columns, or if it has pairs where single texts are
            expected.

    Example:
    ```python
    train = albert_tf.data.read_labelled_texts("train.tsv")
    labels = albert_tf.data.class_names(train.labels)
    classifier.fit(train.x, train.labels)
    ```
    """
    table = Table(path, None, encoding, sheet, label=label, text=text, text_b=text_b)
    table.find("label", "text")
    is_pair = "text_b" in table.columns
    if pairs not in (None, is_pair):
        kinds = ("single texts", "pairs of texts")
        raise AlbertError(
            f"{path} has {kinds[is_pair]}. Expected {kinds[not is_pair]}. Name the "
            "columns to read with `text=` and `text_b=`."
        )
    first, *others = table.cells("text", *["text_b"] * is_pair)
    labels = clean_labels(table.labels(), table.places)
    x = (first, *others) if others else first
    return LabelledTexts(x, labels, table.places)


def read_texts(
    path: str | os.PathLike,
    text: str | int | None = None,
    text_b: str | int | None = None,
    pairs: bool = False,
    encoding: str | None = None,
    sheet: str | None = None,
) -> list[str] | tuple[list[str], list[str]]:
    """Read texts or pairs of texts without labels.

    Args:
        path: as in `read_labelled_texts`. A file with one column needs no header.
        text, text_b: as in `read_labelled_texts`. Other columns are ignored.
        pairs: bool. Whether each example is a pair of texts.
        encoding, sheet: optional strings, as in `read_labelled_texts`.

    Returns:
        A list of strings, or a tuple of two lists for pairs.

    Raises:
        FileNotFoundError, AlbertError: as `read_labelled_texts`.

    Example:
    ```python
    classifier.predict(albert_tf.data.read_texts("reviews.csv"))
    ```
    """
    table = Table(path, None, encoding, sheet, text=text, text_b=text_b)
    return table.texts(pairs)
