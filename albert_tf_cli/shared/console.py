"""Text for terminals, logs and other programs."""

import json
import re
import sys

from rich.console import Console
from rich.table import Table

# Control characters but tab and line feed, those that reverse text, and the halves of
# surrogate pairs. A terminal would obey them, or they cannot be encoded.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str) -> str:
    """Return a text from a file for a terminal, with its control characters escaped."""
    return _CONTROL.sub(lambda x: f"\\u{ord(x[0]):04x}", text)


class _Console(Console):
    def render_str(self, text, **options):
        return super().render_str(escaped(text), **options)


# Output contains text from files and users, where "[b]" and ":x:" are not markup.
console = _Console(highlight=False, markup=False, emoji=False)
errors = _Console(stderr=True, highlight=False, markup=False, emoji=False)


def format_value(value: object) -> str:
    """Format a value of a report in a few words."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={format_value(item)}" for name, item in value.items())
    if isinstance(value, list):
        more = [f"and {len(value) - 5} more"] if len(value) > 5 else []
        return ", ".join([*map(str, value[:5]), *more]) or "none"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value or "none")


def print_line(line: str) -> None:
    """Print a line for other programs, or safely for a terminal."""
    print(escaped(line) if console.is_terminal else line)


def print_json(value: object, indent: int | None = None) -> None:
    """Print JSON, with escapes if the encoding of the output lacks a character."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    print_line(text)


def print_summary(values: dict) -> None:
    """Print a dict as a table, one row per item."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(name, format_value(value))
    console.print(table)
