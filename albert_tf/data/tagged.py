"""Reading texts with entities: columns of tags, and what annotation tools export."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from albert_tf.data.annotations import read_cluener, read_doccano, read_label_studio
from albert_tf.data.encodings import read_text
from albert_tf.data.records import WrongLine
from albert_tf.data.tag_columns import read_columns, read_slashes
from albert_tf.data.tags import Span, check_spans
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class TaggedTexts:
    """Texts and their entities.

    Attributes:
        x: list of strings.
        spans: a list of (start, end, label) for each text, in characters.
        skipped: int, spans that were left out, with `skip_wrong=True`.
    """

    x: list[str]
    spans: list[list[Span]]
    skipped: int = 0

    @property
    def labels(self) -> list[str]:
        """The labels there are, in the order of the alphabet."""
        return sorted({label for row in self.spans for _, _, label in row})


def read_tagged_texts(
    path: str | os.PathLike,
    form: str | None = None,
    separator: str | None = None,
    joiner: str | None = None,
    skip_wrong: bool = False,
) -> TaggedTexts:
    """Read texts with entities.

    | form | a file of it |
    |---|---|
    | `"columns"` | a token and its tag a line, an empty line between sentences, as of CoNLL, MSRA, People's Daily; tags of BIO, BIOES, BMES, BILOU, IO |
    | `"slashes"` | a sentence a line, `中共中央/nt 致/o` |
    | `"cluener"` | JSON lines, `{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}` |
    | `"doccano"` | JSON lines, `{"text": "...", "label": [[0, 2, "PER"]]}`, or with `entities` |
    | `"label_studio"` | a JSON list of tasks, the whole export or JSON-MIN |

    Args:
        path: string, a file in UTF-8, or with a warning GB18030 or UTF-16.
        form: optional string, as above. By default found from the content.
        separator: optional string between columns. By default any white space. Of
            several columns the first is the token and the last the tag.
        joiner: optional string between the tokens of columns. By default nothing
            for characters and for Chinese, else a space.
        skip_wrong: bool. Leave out and count spans that are outside the text or
            overlap one before them, instead of raising an error.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it is empty, in another encoding, or not of the form, saying which line.
    """  # noqa: E501 (a table)
    path = pathlib.Path(path)
    content = read_text(path)
    if not content.strip():
        raise AlbertError(f"{path} is empty. Expected texts with entities.")
    form = form or _form_of(content)
    if form not in _READERS:
        raise AlbertError(f"`form` must be one of {list(_READERS)}. Received: {form}")
    options = {"separator": separator, "joiner": joiner} if form == "columns" else {}
    texts, rows, skipped = [], [], 0
    try:
        for record in _READERS[form](content, **options):
            texts.append(record.text)
            spans, wrong = _checked(record, skip_wrong)
            rows.append(spans)
            skipped += wrong
    except WrongLine as error:
        raise AlbertError(f"{error.where} of {path}: {error}") from None
    if not texts:
        raise AlbertError(f"{path} holds no text with annotations (as {form}).")
    return TaggedTexts(texts, rows, skipped)


def _checked(record, skip_wrong):
    """The spans of a record, and how many were left out."""
    if not skip_wrong:
        try:
            return check_spans(record.spans, len(record.text)), 0
        except ValueError as error:
            raise WrongLine(record.where, error) from None
    kept = []
    for span in record.spans:
        try:
            kept = check_spans([*kept, span], len(record.text))
        except ValueError:
            continue
    return kept, len(record.spans) - len(kept)


def _form_of(content):
    start = content.lstrip()
    if start[0] == "[":
        return "label_studio"
    line = start.split("\n", 1)[0]
    if start[0] == "{":
        # What is no JSON is told by the reader.
        is_cluener = '"label": {' in line or '"label":{' in line
        return "cluener" if is_cluener else "doccano"
    parts = line.split()
    return "slashes" if all("/" in part[1:] for part in parts) else "columns"


_READERS = {
    "columns": read_columns,
    "slashes": read_slashes,
    "cluener": read_cluener,
    "doccano": read_doccano,
    "label_studio": read_label_studio,
}
