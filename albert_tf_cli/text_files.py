"""Files of texts for `albert-tf predict`."""

import os
import pathlib


def is_file(text):
    """Whether a text is the name of a file; a text too long for a name is not."""
    return os.path.isfile(text)


def refuse_missing_file(text):
    """Tell who named a file that is not there, which would be read as a text."""
    path = pathlib.Path(text)
    if path.suffix in (".csv", ".tsv", ".jsonl", ".txt") and not is_file(text):
        raise FileNotFoundError(
            f"{text} is no file. Expected texts, or a file of them."
        )


def lines_of(path, pairs, columns):
    """The texts of a file, or its pairs, as lines of it would be given."""
    from albert_tf.data import read_texts
    from albert_tf.data.reading import read_lines

    if pathlib.Path(path).suffix == ".txt" and columns.text is None:
        lines = read_lines(path)
        return lines[:-1] if lines[-1] == "" else lines
    x = read_texts(path, columns.text, columns.text_b, pairs)
    return ["\t".join(pair) for pair in zip(*x, strict=True)] if type(x) is tuple else x
