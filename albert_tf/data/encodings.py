"""Text files in the encodings that Chinese data come in."""

import codecs
import pathlib
import warnings

from albert_tf.files import decode_utf8


def read_text(path):
    """The text of a file in UTF-8, or with a warning in GB18030 (GBK) or UTF-16.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it is in none of these, saying which byte in which line.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        kind = "is a directory, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {kind}.")
    data = path.read_bytes()
    encoding = _encoding(data)
    if encoding == "utf-8":
        return decode_utf8(data, path, "Save it anew as UTF-8.")
    warnings.warn(f"{path} is {encoding}, not UTF-8, and was read so.", stacklevel=2)
    return data.decode(encoding)


def read_lines(path):
    """The lines of `read_text`, a list; only newlines end one, with CR or without."""
    # Not splitlines, which also cuts at characters that texts contain.
    return read_text(path).replace("\r\n", "\n").split("\n")


def _encoding(data):
    """The name of the encoding; "utf-8" where none fits."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if _is_in("utf-8", data) or not _is_in("gb18030", data):
        return "utf-8"
    # Where most lines are UTF-8, the others are damaged.
    lines = [line for line in data.split(b"\n") if not line.isascii()]
    are_utf8 = sum(_is_in("utf-8", line) for line in lines)
    return "utf-8" if 2 * are_utf8 >= len(lines) else "gb18030"


def _is_in(encoding, data):
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
