"""Read texts with entities: columns of tags, and exports of annotation tools."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator

from albert_tf.data.reading import field, numbered_lines, parse_json_lines
from albert_tf.data.tags import Span, check_spans, split_tag, tags_to_spans
from albert_tf_lite.errors import AlbertError

# Characters from here on are written without spaces between words.
_FIRST_UNSPACED = "\u2e80"


@dataclasses.dataclass(frozen=True)
class TaggedTexts:
    """Texts and their entities.

    Attributes:
        x: list of strings.
        spans: list of (start, end, label) per text, in characters.
        skipped: int. Spans that `skip_wrong=True` left out.
    """

    x: list[str]
    spans: list[list[Span]]
    skipped: int = 0

    @property
    def labels(self) -> list[str]:
        """Return the distinct labels, sorted."""
        return sorted({label for row in self.spans for _, _, label in row})


def read_tagged_texts(
    path: str | os.PathLike,
    form: str | None = None,
    separator: str | None = None,
    joiner: str | None = None,
    skip_wrong: bool = False,
) -> TaggedTexts:
    """Read texts with entities.

    | form | content of the file |
    |---|---|
    | `"columns"` | one token and its tag per line, an empty line between sentences, as in CoNLL, MSRA and People's Daily. The tags are BIO, BIOES, BMES, BILOU or IO |
    | `"slashes"` | one sentence per line, `中共中央/nt 致/o` |
    | `"cluener"` | JSON lines, `{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}` |
    | `"doccano"` | JSON lines, `{"text": "...", "label": [[0, 2, "PER"]]}`, or with `entities` |
    | `"label_studio"` | a JSON list of tasks, the whole export or JSON-MIN |

    Args:
        path: path of a file in UTF-8 or, with a warning, in GB18030 or UTF-16.
        form: optional string, see above. By default found from the content.
        separator: optional string between columns. By default any white space. The
            first column is the token, the last one the tag.
        joiner: optional string between the tokens of columns. By default nothing
            for single characters and for Chinese, otherwise a space.
        skip_wrong: bool. Skip and count spans that are outside the text or overlap
            an earlier one, instead of raising an error.

    Returns:
        A `TaggedTexts`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is empty, has another encoding or another form. Names
            the line.

    Example:
    ```python
    train = albert_tf.data.read_tagged_texts("train.txt")
    tagger.fit(train.x, train.spans)
    ```
    """  # noqa: E501 (a table)
    lines = list(numbered_lines(path))
    first = next((line.lstrip() for _, line in lines if line.strip()), None)
    if first is None:
        raise AlbertError(f"{path} is empty. Expected texts with entities.")
    form = form or _find_form(first)
    if form not in _READERS:
        raise AlbertError(f"`form` must be one of {list(_READERS)}. Received: {form}")
    options = {"separator": separator, "joiner": joiner} if form == "columns" else {}
    texts, rows, skipped = [], [], 0
    for place, text, spans in _READERS[form](lines, **options):
        kept = _check(place, text, spans, skip_wrong)
        texts.append(text)
        rows.append(kept)
        skipped += len(spans) - len(kept)
    if not texts:
        raise AlbertError(f"{path} has no texts with annotations (as {form}).")
    return TaggedTexts(texts, rows, skipped)


def _find_form(line):
    """Find the form from the first line that is not blank."""
    if line[0] == "[":
        return "label_studio"
    if line[0] == "{":
        is_cluener = '"label": {' in line or '"label":{' in line
        return "cluener" if is_cluener else "doccano"
    is_slashes = all("/" in part[1:] for part in line.split())
    return "slashes" if is_slashes else "columns"


def _check(place, text, spans, skip_wrong):
    if not skip_wrong:
        try:
            return check_spans(spans, len(text))
        except ValueError as error:
            raise AlbertError(f"{place}: {error}") from None
    kept = []
    for span in spans:
        try:
            kept = check_spans([*kept, span], len(text))
        except ValueError:
            continue
    return kept


# === Readers: numbered lines to (place, text, spans) ===


def _read_columns(lines, separator, joiner) -> Iterator[tuple]:
    sentences, rows = [], []
    for place, line in [*lines, (None, "")]:
        if line.strip() and not line.startswith("-DOCSTART-"):
            rows.append((place, *_cells(place, line, separator)))
        elif rows:
            sentences.append(rows)
            rows = []
    if joiner is None:
        joiner = _find_joiner([token for rows in sentences for _, token, _ in rows])
    for rows in sentences:
        text, bounds = "", []
        for _, token, _ in rows:
            text += joiner if text else ""
            bounds.append((len(text), len(text) + len(token)))
            text += token
        spans = tags_to_spans(tag for _, _, tag in rows)
        spans = [(bounds[i][0], bounds[j - 1][1], label) for i, j, label in spans]
        yield rows[0][0], text, spans


def _cells(place, line, separator):
    """Return the token and the tag of a line."""
    cells = line.split(separator)
    if len(cells) == 1 and line[0].isspace():
        # The token is a space.
        cells = [line[0], *cells]
    if len(cells) < 2:
        raise AlbertError(
            f"{place}: {line!r} has one column. Expected a token and its tag, such as "
            f"'中 B-ORG', separated by {separator or 'white space'!r}."
        )
    token, tag = cells[0], cells[-1].strip()
    try:
        split_tag(tag)
    except ValueError as error:
        raise AlbertError(f"{place}: {error}") from None
    return token or " ", tag


def _find_joiner(tokens):
    unspaced = sum(len(x) == 1 or x[-1] >= _FIRST_UNSPACED for x in tokens)
    return "" if unspaced > len(tokens) / 2 else " "


def _read_slashes(lines) -> Iterator[tuple]:
    for place, line in lines:
        text, spans = "", []
        for part in line.split():
            word, _, label = part.rpartition("/")
            if not (word and label):
                raise AlbertError(
                    f"{place}: {part!r} is not a word and its label, such as "
                    "'中共中央/nt'."
                )
            if label.upper() != "O":
                spans.append((len(text), len(text) + len(word), label))
            text += word
        if text:
            yield place, text, spans


def _read_cluener(lines) -> Iterator[tuple]:
    for place, record in parse_json_lines(lines):
        text, labels = field(record, "text", str, place), record.get("label")
        try:
            spans = [
                # CLUENER's end is the last character.
                _located(text, start, end + 1, surface, label)
                for label, surfaces in labels.items()
                for surface, places in surfaces.items()
                for start, end in places
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise AlbertError(
                f'{place}: expected "label": {{"name": {{"叶老桂": [[9, 11]]}}}}. '
                f"Found: {labels!r} ({error})"
            ) from None
        yield place, text, spans


def _read_doccano(lines) -> Iterator[tuple]:
    for place, record in parse_json_lines(lines):
        text = field(record, ("text", "data"), str, place)
        found = field(record, ("label", "labels", "entities"), list, place)
        keys = ("start_offset", "end_offset", "label")
        yield (
            place,
            text,
            [
                tuple(map(span.get, keys)) if isinstance(span, dict) else span
                for span in found
            ],
        )


def _read_label_studio(lines) -> Iterator[tuple]:
    try:
        tasks = json.loads("\n".join(line for _, line in lines))
    except json.JSONDecodeError as error:
        place = lines[error.lineno - 1][0]
        raise AlbertError(f"{place} is not JSON: {error.msg}.") from None
    path = lines[0][0].removeprefix("Line 1 of ")
    for number, task in enumerate(tasks, start=1):
        if not isinstance(task, dict):
            raise AlbertError(f"Task {number} of {path} is not a JSON object: {task!r}")
        name = f"{number} (id {task['id']})" if "id" in task else number
        place = f"Task {name} of {path}"
        values = _studio_values(task)
        if values is None:
            # Not annotated yet.
            continue
        data = task.get("data", task)
        names = [x for x in ("text", *data) if isinstance(data.get(x), str)]
        text = field(data, names[0] if names else "text", str, place)
        yield place, text, [_studio_span(place, text, value) for value in values]


def _studio_values(task):
    """Return the first annotator's dicts with start, end, text and labels."""
    if "data" not in task:
        return task.get("label")
    annotations = task.get("annotations", task.get("completions")) or []
    done = [x for x in annotations if not x.get("was_cancelled")]
    if not done:
        return None
    values = [part.get("value", {}) for part in done[0].get("result", [])]
    return [value for value in values if "labels" in value]


def _studio_span(place, text, value):
    try:
        (label,) = value["labels"]
        return _located(text, value["start"], value["end"], value.get("text"), label)
    except (KeyError, TypeError, ValueError) as error:
        raise AlbertError(
            f'{place}: expected {{"start": 0, "end": 2, "labels": ["PER"]}}, with one '
            f"label. Found: {value!r} ({error})"
        ) from None


def _located(text, start, end, surface, label) -> Span:
    """Return a span in characters; browsers count offsets in UTF-16 units."""
    if surface is None or text[start:end] == surface:
        return start, end, label
    units = text.encode("utf-16-le", "surrogatepass")
    before, inside = units[: 2 * start], units[2 * start : 2 * end]
    if inside.decode("utf-16-le", "replace") == surface:
        start = len(before.decode("utf-16-le", "replace"))
        return start, start + len(surface), label
    raise AlbertError(
        f"text[{start}:{end}] is {text[start:end]!r}, expected {surface!r}"
    )


_READERS = {
    "columns": _read_columns,
    "slashes": _read_slashes,
    "cluener": _read_cluener,
    "doccano": _read_doccano,
    "label_studio": _read_label_studio,
}
