"""JSON files of examples, and errors that name their entries."""

import json

from albert_tf.data.encodings import read_lines, read_text
from albert_tf_lite.errors import AlbertError


def read_json(path):
    """What a JSON file holds.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it is not text or not JSON, naming the line.
    """
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise AlbertError(
            f"Line {error.lineno} of {path} is not JSON: {error.msg}."
        ) from error


def read_json_lines(path):
    """The JSON value of each line that is not blank, after what to call it, a string.

    Raises:
        FileNotFoundError, ValueError: as `read_json`.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        entry = f"Line {number} of {path}"
        try:
            yield entry, json.loads(line)
        except json.JSONDecodeError as error:
            raise AlbertError(f"{entry} is not JSON: {error.msg}.") from error


def read_json_records(path):
    """The values of the list that a `.json` file holds, or else of the lines of a file.

    Each after what to call it, as `read_json_lines`.
    """
    if path.suffix != ".json":
        return read_json_lines(path)
    records = enumerate(read_json(path), start=1)
    return ((f"Entry {number} of {path}", record) for number, record in records)


def field(record, name, kind, entry):
    """The field `name` of a JSON object.

    Args:
        record: what should be a dict.
        name: string.
        kind: the type of the value, or tuple of types.
        entry: string, what to call the object in a message, file and position.

    Raises:
        AlbertError: if it is missing or of another type.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = " or ".join(_JSON_NAMES[each] for each in kinds)
    if not isinstance(record, dict):
        raise AlbertError(
            f"{entry} should be an object with the field {name!r}. Found: "
            f"{str(record)[:80]!r}"
        )
    if name not in record:
        raise AlbertError(
            f"{entry} has no field {name!r}. Its fields are {sorted(record)}."
        )
    value = record[name]
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
        raise AlbertError(
            f"{name!r} of {entry} should be {names}. Found: {str(value)[:80]!r}"
        )
    return value


_JSON_NAMES = {
    str: "a string",
    list: "a list",
    dict: "an object",
    int: "a whole number",
    bool: "true or false",
}
