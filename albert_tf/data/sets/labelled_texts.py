"""Labelled texts, or texts alone, of a table."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence

from albert_tf.data.files.annotation_tools import label_value
from albert_tf.data.files.tables import Table, read_table
from albert_tf.data.labels.class_matching import (
    expected_classes,
    match_classes,
    match_numbers,
    require_all,
)
from albert_tf.data.labels.cleaning import Label, clean_labels
from albert_tf.data.labels.separators import label_lists
from albert_tf_lite.errors import AlbertError

# Texts, or the tuple of two lists for pairs.
_Texts = list[str] | tuple[list[str], list[str]]


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts or pairs of texts, and their labels.

    Attributes:
        x: list of strings, or a tuple of two lists for pairs.
        labels: list of strings; a tuple for a text with a list of labels, `None` for a
            missing label.
        places: list of strings such as "Line 3 of a.tsv".
    """

    x: _Texts
    labels: list[Label]
    places: list[str] = dataclasses.field(compare=False)

    @property
    def pairs(self) -> bool:
        """Return whether each example is a pair of texts."""
        return isinstance(self.x, tuple)

    def class_ids(self, classes: Sequence) -> list[int]:
        """Return the position of each label; raise if it is not one of the classes."""
        matches = match_classes(self.labels, self.places, classes)
        return require_all(matches, expected_classes(classes))

    def label_lists(
        self, separator: str | None = None, classes: Sequence | None = None
    ) -> list[list[str]]:
        """Return the list of labels of each text; "体育|娱乐" has two, "" none.

        Args:
            separator: optional string. By default "|"; then a warning names a label
                that may be several, separated by another character.
            classes: optional list of strings or numbers. A label among them is not
                split.

        Raises:
            AlbertError: if a label is missing or not among the classes.
        """
        return label_lists(self.labels, self.places, separator, classes)

    def scores(self) -> list[float]:
        """Return the labels as numbers; raise if one is not a finite number."""
        expected = "a number. Name the column of the numbers with `label=`"
        return require_all(match_numbers(self.labels, self.places), expected)

    def without_invalid(self, classes: Sequence | None = None) -> LabelledTexts:
        """Leave out, with a warning, labels that are no classes (`None`: no numbers).

        Nothing is left out if no label is valid.
        """
        if classes is None:
            matches = match_numbers(self.labels, self.places)
        else:
            matches = match_classes(self.labels, self.places, classes)
        kept = [i for i, value in enumerate(matches.values) if value is not None]
        if len(kept) in (0, len(self.labels)):
            return self
        warnings.warn(f"{matches.message} Skipped.", stacklevel=2)
        return LabelledTexts(
            _select_texts(self.x, kept),
            [self.labels[i] for i in kept],
            [self.places[i] for i in kept],
        )


def _select_texts(x: _Texts, kept: list[int]) -> _Texts:
    if isinstance(x, tuple):
        first, second = x
        return [first[i] for i in kept], [second[i] for i in kept]
    return [x[i] for i in kept]


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
            `text`, `text_a`, `text_b`, `sentence1`, ...). Without a header, two columns
            are a text and its label, which has fewer distinct values, in either order;
            three are two texts and their label.
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
    given = {"label": label, "text": text, "text_b": text_b}
    table = read_table(path, encoding, sheet, given)
    table.find("label", "text")
    is_pair = "text_b" in table.columns
    if pairs not in (None, is_pair):
        kinds = ("single texts", "pairs of texts")
        raise AlbertError(
            f"{path} has {kinds[is_pair]}. Expected {kinds[not is_pair]}. Name the "
            "columns to read with `text=` and `text_b=`."
        )
    texts = table.strings("text")
    x: _Texts = (texts, table.strings("text_b")) if is_pair else texts
    labels = clean_labels(_label_cells(table), table.places)
    return LabelledTexts(x, labels, table.places)


def _label_cells(table: Table) -> list:
    """Return the labels as in the file; a list if there are several.

    Raise if a label is a span of a text.
    """
    labels = [label_value(cell) for cell in table.column("label", may_lack=True)]
    for place, label in zip(table.places, labels, strict=True):
        # CLUENER has a dict of dicts.
        values = list(label.values()) if isinstance(label, dict) else label
        is_list = isinstance(values, list)
        if is_list and any(isinstance(value, (dict, list)) for value in values):
            raise AlbertError(
                f"{place} has spans instead of a label: {str(label)[:80]!r}. Learn "
                "them by finetune --task token-classification, or read them by "
                "`read_tagged_texts`."
            )
    return labels


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
    table = read_table(path, encoding, sheet, {"text": text, "text_b": text_b})
    if not pairs:
        table.find("text")
        return table.strings("text")
    table.find("text", "text_b")
    return table.strings("text"), table.strings("text_b")
