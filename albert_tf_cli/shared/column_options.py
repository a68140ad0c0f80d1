"""The options of commands that tell how to read the columns of a file."""

import dataclasses
from collections.abc import Mapping

from albert_tf_cli.shared.label_map import parse_label_map


@dataclasses.dataclass(frozen=True)
class ColumnOptions:
    """Columns of a file, its encoding and its sheet; `None` if to be found.

    Attributes:
        label, text, text_b: optional strings, names or numbers from 1 of columns.
        label_separator: optional string between the labels of a text.
        encoding: optional string, such as `"gb18030"`.
        sheet: optional string, the sheet of a workbook.
        label_map: dict, the names that labels of the file are given.
    """

    label: str | None = None
    text: str | None = None
    text_b: str | None = None
    label_separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    label_map: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def named(self) -> dict[str, str]:
        """The columns that are named, by their roles."""
        columns = {"label": self.label, "text": self.text, "text_b": self.text_b}
        return {role: name for role, name in columns.items() if name is not None}


def columns_of(options: object) -> ColumnOptions:
    """Return those of the options of a command that describe the columns of a file."""
    return ColumnOptions(
        label=getattr(options, "label_column", None),
        text=getattr(options, "text_column", None),
        text_b=getattr(options, "text_b_column", None),
        label_separator=getattr(options, "label_separator", None),
        encoding=getattr(options, "encoding", None),
        sheet=getattr(options, "sheet", None),
        label_map=parse_label_map(getattr(options, "label_map", None)),
    )
