"""Records of annotation tools and of CLUE as flat records of texts and labels."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterable
from typing import Any

from albert_tf.data.questions import find_answer
from albert_tf_lite.errors import AlbertError

# Fields that Label Studio exports beside the fields of a text and its labels.
_LABEL_STUDIO = frozenset(
    ("annotation_id", "annotator", "created_at", "updated_at", "lead_time", "id")
)
# The start of the JSON in a cell of such an export: choices, or spans.
_LABEL_STUDIO_CELL = re.compile(r'\{"choices"|\[\{"(start|end|text|labels)"')


def flat(place: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its text and its label as fields of their own.

    A record is that of the JSON of Label Studio, of doccano with `annotations`, or of
    CLUEWSC, in whose text _the noun_ and [the pronoun] are marked. Others are returned
    as they are.
    """
    given, target = record.get("annotations"), record.get("target")
    if isinstance(given, list):
        if isinstance(record.get("data"), dict):
            return _label_studio(place, record["data"], given)
        if given and isinstance(given[0], dict):
            is_span = "start_offset" in given[0]
            labels = given if is_span else [x.get("label") for x in given]
            return record | {"label": labels}
    if isinstance(target, dict) and "span1_text" in target:
        rest = {name: value for name, value in record.items() if name != "target"}
        return rest | {"text": marked_text(record["text"], target)}
    return record


def _label_studio(place, data, annotations):
    """Return the record that the export JSON-MIN has."""
    found: list[dict[str, list]] = []
    for annotation in annotations:
        if not annotation.get("was_cancelled"):
            found.append({})
            # Relations between spans have no value.
            items = (x for x in annotation.get("result", ()) if "value" in x)
            for item in items:
                value = item["value"]
                lists = (x for x in value.values() if isinstance(x, list))
                labels = [value] if "start" in value else next(lists, [])
                found[-1].setdefault(item["from_name"], []).extend(labels)
    if any(labels != found[0] for labels in found):
        raise AlbertError(
            f"{place} has annotations that differ. Export one annotation for each task."
        )
    labels = found[0] if found else {}
    return {**data, **labels, "annotation_id": None, "lead_time": None}


def label_studio_label(names: Iterable[str], texts: Iterable[str]) -> str | None:
    """Return the column of an export of Label Studio that holds the labels, if any."""
    names = set(names)
    rest = names - _LABEL_STUDIO - set(texts)
    is_export = {"annotation_id", "lead_time"} <= names
    return rest.pop() if is_export and len(rest) == 1 else None


def label_value(value: Any) -> Any:
    """Return the labels of a cell: a list in JSON, or as Python prints it, is read."""
    if not isinstance(value, str):
        pass
    elif _LABEL_STUDIO_CELL.match(value):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise AlbertError(
                f"The label {value:.80} is damaged JSON of Label Studio: {error}. "
                "Export the labels again."
            ) from error
    elif value.startswith("[") and value.endswith("]"):
        # A name may have brackets, too.
        with contextlib.suppress(ValueError, SyntaxError, RecursionError):
            items = ast.literal_eval(value)
            # `[{"a"}]` has a set of Python, which is no list of labels.
            if not any(isinstance(item, (set, bytes)) for item in items):
                value = items
    if isinstance(value, dict) and "choices" in value:
        return value["choices"]
    return value


def marked_text(text: str, target: dict[str, Any]) -> str | None:
    """Return a text of CLUEWSC with _the noun_ and [the pronoun] marked.

    Positions that are wrong are corrected; `None` if a part does not occur.
    """
    spans = []
    for number, before, after in (("1", "_", "_"), ("2", "[", "]")):
        part = target[f"span{number}_text"]
        start = find_answer(text, target[f"span{number}_index"], part)
        if start is None:
            return None
        spans.append((start, part, before, after))
    # The later span first, so that the position of the other stays right.
    for start, part, before, after in sorted(spans, reverse=True):
        text = text[:start] + before + part + after + text[start + len(part) :]
    return text
