"""Read files of texts for `albert-tf predict`."""

import os
import pathlib


def is_file(text):
    """Return whether a text names a file; a text too long for a name does not."""
    return os.path.isfile(text)


def refuse_missing_file(text):
    """Raise if a text looks like the name of a missing file."""
    path = pathlib.Path(text)
    if path.suffix in (".csv", ".tsv", ".jsonl", ".txt") and not is_file(text):
        raise FileNotFoundError(
            f"{text} is not a file. Expected texts, or one file of texts."
        )


def lines_of(path, pairs, columns):
    """Read the texts of a file; the two texts of a pair are joined by a tab."""
    from albert_tf.data import read_texts
    from albert_tf.data.encodings import read_lines

    if pathlib.Path(path).suffix == ".txt" and columns.text is None:
        lines = read_lines(path)
        return lines[:-1] if lines[-1] == "" else lines
    x = read_texts(path, columns.text, columns.text_b, pairs)
    return ["\t".join(pair) for pair in zip(*x, strict=True)] if type(x) is tuple else x
