"""How the records of data sets stand in files.

Each form is a function of a file and a row of the table, and gives pairs: what to call
a record, and a function that gives its `Example` or raises `Rejected`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from albert_tf_lite.errors import AlbertError
from zh.datasets import examples
from zh.datasets.files import File
from zh.datasets.records import (
    Example,
    Rejected,
    decoded,
    field,
    lines_of,
    parsed,
    strings,
)

Records = Iterator[tuple[str, Callable[[], Example]]]


def json_lines(file: File, row: Any) -> Records:
    """A JSON object a line, as most of CLUE."""
    for place, line in lines_of(file.read()):
        yield place, functools.partial(_object, line, row)


def _object(line, row):
    return row.example(parsed(line), row)


# Other names that headers have for the columns of the table.
_HEADERS = {
    "sentence1": "text_a",
    "sentence2": "text_b",
    "question1": "text_a",
    "question2": "text_b",
    "text": "text_a",
    "review": "text_a",
}


def tsv(file: File, row: Any) -> Records:
    """Columns with tabs between them, with a header or in the order of the table."""
    lines = lines_of(file.read())
    names = list(row.columns)
    for number, (place, line) in enumerate(lines):
        if number == 0:
            cells = line.decode(errors="replace").split("\t")
            header = [_HEADERS.get(x.strip().lower(), x.strip().lower()) for x in cells]
            if set(names) <= set(header):
                names = header
                continue
        yield place, functools.partial(_cells, line, names, row)


def _cells(line, names, row):
    cells = decoded(line).split("\t")
    if len(cells) != len(names):
        raise Rejected("another number of columns")
    return row.example(dict(zip(names, cells, strict=True)), row)


def c3(file: File, row: Any) -> Records:
    """A JSON list of documents with their questions."""
    for d, document in enumerate(_whole(file, list)):
        is_whole = isinstance(document, list) and len(document) > 1
        if not is_whole or not isinstance(document[1], list):
            yield f"[{d}]", _rejected("no list of a document and its questions")
            continue
        for q, question in enumerate(document[1]):
            yield (
                f"[{d}][1][{q}]",
                functools.partial(examples.choice, document[0], question),
            )


_IDIOM = re.compile("(#idiom[0-9]+#)")


def chid(file: File, row: Any) -> Records:
    """A JSON object a line, with blanks in texts; the answers are in a file beside."""
    beside = file.beside("_answer")
    answers = _whole(beside, dict) if beside else {}
    for place, line in lines_of(file.read()):
        try:
            record = parsed(line)
            texts, candidates = (field(record, x, list) for x in row.fields)
            texts = [_IDIOM.split(text) for text in strings(texts, "a text")]
        except Rejected as error:
            yield place, _rejected(str(error))
            continue
        for parts in texts:
            for i, tag in enumerate(parts):
                if i % 2:
                    yield (
                        f"{tag} in {place}",
                        functools.partial(
                            examples.idiom, parts, i, candidates, answers.get(tag)
                        ),
                    )


def squad(file: File, row: Any) -> Records:
    """The form of SQuAD, or that of CMRC itself, which has no paragraphs."""
    for a, article in enumerate(_list_in(_whole(file, dict), "data", [])):
        for p, paragraph in enumerate(_list_in(article, "paragraphs", [article])):
            # What has no questions is one that is rejected.
            for q, entry in enumerate(_list_in(paragraph, "qas", [None])):
                yield (
                    f"data[{a}].paragraphs[{p}].qas[{q}]",
                    functools.partial(examples.question, paragraph, entry),
                )


def _list_in(record, name, default):
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, list) else default


def _rejected(reason):
    def reject():
        raise Rejected(reason)

    return reject


def _whole(file, kind):
    """What a file of one JSON value holds."""
    try:
        value = json.loads(file.read())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise AlbertError(f"{file} is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise AlbertError(
            f"{file} should hold a JSON {'list' if kind is list else 'object'}. Found: "
            f"{str(value)[:80]}"
        )
    return value
