"""Records of annotation tools and of CLUE as flat records of texts and labels."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from albert_tf.data.labels.text_spans import find_answer
from albert_tf_lite.errors import AlbertError, first_line

# Fields that Label Studio exports beside the fields of a text and its labels.
_LABEL_STUDIO = frozenset(
    ("annotation_id", "annotator", "created_at", "updated_at", "lead_time", "id")
)
# The start of the JSON in a cell of such an export: choices, or spans.
_LABEL_STUDIO_CELL = re.compile(r'\{"choices"|\[\{"(start|end|text|labels)"')


def unfold(place: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose text and label are fields.

    A record is that of the JSON of Label Studio, of doccano with `annotations`, or of
    CLUEWSC. Others are returned as they are.
    """
    annotations, target = record.get("annotations"), record.get("target")
    if isinstance(annotations, list):
        if isinstance(record.get("data"), dict):
            with _naming(place, "Label Studio"):
                return _label_studio(place, record["data"], annotations)
        if annotations and isinstance(annotations[0], dict):
            with _naming(place, "doccano"):
                return {**record, "label": _doccano_labels(annotations)}
    if isinstance(target, dict) and "span1_text" in target:
        with _naming(place, "CLUEWSC"):
            return _cluewsc(record, target)
    return record


@contextlib.contextmanager
def _naming(place: str, tool: str) -> Iterator[None]:
    """Name the place of a record that lacks a field of a tool, or has other values."""
    try:
        yield
    except AlbertError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise AlbertError(
            f"{place} does not have the form of {tool}: {type(error).__name__}, "
            f"{first_line(error)}. Export it again."
        ) from error


def _cluewsc(record: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """Return a record in whose text _the noun_ and [the pronoun] are marked."""
    marked = {**record, "text": marked_text(record["text"], target)}
    del marked["target"]
    return marked


def _doccano_labels(annotations: list[dict[str, Any]]) -> list:
    """Return the spans of a text, or its labels."""
    if "start_offset" in annotations[0]:
        return annotations
    return [annotation.get("label") for annotation in annotations]


def _label_studio(
    place: str, data: dict[str, Any], annotations: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the record that the export JSON-MIN has."""
    kept = [
        _labels_by_field(annotation)
        for annotation in annotations
        if not annotation.get("was_cancelled")
    ]
    if any(labels != kept[0] for labels in kept):
        raise AlbertError(
            f"{place} has annotations that differ. Export one annotation for each task."
        )
    labels = kept[0] if kept else {}
    return {**data, **labels, "annotation_id": None, "lead_time": None}


def _labels_by_field(annotation: dict[str, Any]) -> dict[str, list]:
    """Return the labels or spans that an annotator gave, by the name of their field."""
    labels: dict[str, list] = {}
    for item in annotation.get("result", ()):
        # Relations between spans have no value.
        if "value" not in item:
            continue
        value = item["value"]
        if "start" in value:
            values = [value]
        else:
            values = next((x for x in value.values() if isinstance(x, list)), [])
        name = item["from_name"]
        if not isinstance(name, str):
            raise TypeError(f"from_name is {name!r:.80}")
        labels.setdefault(name, []).extend(values)
    return labels


def label_studio_label(names: Iterable[str], texts: Iterable[str]) -> str | None:
    """Return the column of an export of Label Studio that holds the labels, if any."""
    names = set(names)
    rest = names - _LABEL_STUDIO - set(texts)
    is_export = {"annotation_id", "lead_time"} <= names
    return rest.pop() if is_export and len(rest) == 1 else None


def label_value(cell: object) -> Any:
    """Return the labels of a cell: a list in JSON, or as Python prints it, is read."""
    value = cell
    if isinstance(cell, str):
        if _LABEL_STUDIO_CELL.match(cell):
            value = _parse_label_studio(cell)
        elif cell.startswith("[") and cell.endswith("]"):
            value = _parse_python_list(cell)
    if isinstance(value, dict) and "choices" in value:
        return value["choices"]
    return value


def _parse_python_list(cell: str) -> object:
    """Return the list that a cell spells, or the cell: a name may have brackets."""
    with contextlib.suppress(ValueError, SyntaxError, RecursionError):
        items = ast.literal_eval(cell)
        # `[{"a"}]` has a set of Python, which is no list of labels.
        if not any(isinstance(item, (set, bytes)) for item in items):
            return items
    return cell


def _parse_label_studio(cell: str) -> object:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise AlbertError(
            f"The label {cell!r:.80} is damaged JSON of Label Studio: {error}. Export "
            "the labels again."
        ) from error


def marked_text(text: str, target: dict[str, Any]) -> str | None:
    """Return a text of CLUEWSC with _the noun_ and [the pronoun] marked.

    Positions that are wrong are corrected; `None` if a part does not occur.
    """
    spans = []
    for number, before, after in (("1", "_", "_"), ("2", "[", "]")):
        word = target[f"span{number}_text"]
        start = find_answer(text, target[f"span{number}_index"], word)
        if start is None:
            return None
        spans.append((start, word, before, after))
    # The later span first, so that the position of the other stays right.
    for start, word, before, after in sorted(spans, reverse=True):
        text = text[:start] + before + word + after + text[start + len(word) :]
    return text
