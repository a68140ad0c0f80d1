"""Texts given as arguments, as a file or as standard input."""

import io
import os
import sys
import warnings

from albert_tf.data.files.compression import endings
from albert_tf.data.files.json_values import is_json
from albert_tf.data.files.text_lines import open_text
from albert_tf_lite.errors import AlbertError

_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".xlsx")


def named_file(texts: list[str] | None) -> str | None:
    """Return the file that the only text names; raise if that file is missing."""
    if texts and len(texts) > 1 and all(map(os.path.isfile, texts)):
        raise AlbertError(f"Pass one file at a time. Received: {' '.join(texts)}")
    if not texts or len(texts) > 1:
        return None
    # Unlike pathlib, this returns False for a text that is too long for a name.
    if os.path.isfile(texts[0]) or os.path.isdir(texts[0]):
        return texts[0]
    is_pipe = os.path.exists(texts[0])
    if is_pipe or endings(texts[0])[0] in _SUFFIXES:
        raise FileNotFoundError(
            f"{texts[0]} is not a file. Expected texts, or one file of texts. Pass the "
            "output of another command as standard input."
        )
    return None


def read_standard_input(encoding: str | None) -> list[str]:
    """Return the lines of standard input, with U+FFFD for what cannot be decoded."""
    name = "Standard input"
    file: io.BufferedReader = io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))
    text = open_text(name, file, encoding, "replace", newline=None)
    lines = [line.removesuffix("\n") for line in text]
    if lines:
        lines[0] = lines[0].removeprefix("\ufeff")
    if wrong := [i for i, line in enumerate(lines, start=1) if "\ufffd" in line]:
        warnings.warn(
            f"{name} is not {text.encoding.upper()} in {len(wrong)} lines, first in "
            f"line {wrong[0]}. Name the right encoding with `encoding=`.",
            stacklevel=2,
        )
    if lines and is_json(lines[0]):
        raise AlbertError(f"{name} looks like JSON. Save it as a .jsonl file.")
    return lines
