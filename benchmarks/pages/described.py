"""Read `tables.toml`, which describes the tables of pages."""

import pathlib
import tomllib

_FILE = pathlib.Path(__file__).with_name("tables.toml")
_DESCRIBED = tomllib.loads(_FILE.read_text("utf-8"))
NAMES, ROWS, TABLES = (_DESCRIBED[x] for x in ("names", "rows", "tables"))


def in_language(text, chinese):
    """Return a text of both languages, or one of [English, Chinese]."""
    return text if isinstance(text, str) else text[chinese]
