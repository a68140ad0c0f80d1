"""Scores of entities, by seqeval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from albert_tf.evaluation.extra import import_extra
from albert_tf_lite.errors import AlbertError

# (start, end, label) in characters.
Span = tuple[int, int, str]


def entity_scores(
    truth: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]]
) -> dict[str, Any]:
    """Precision, recall and F1 of entities, as CoNLL-2003 is scored.

    An entity is right if its start, its end and its label are.

    Args:
        truth, predicted: a list of (start, end, label) for each text; of one text no
            two may share a character.

    Returns:
        A dict: `precision`, `recall`, `f1` (floats, over the entities of all types),
        `count` (int, true entities), and `types`, a dict by label of dicts with
        the same four.

    Raises:
        ImportError: if seqeval is not installed.
        AlbertError: if the two lists have different lengths.

    Example:
    ```python
    entity_scores(spans, tagger.predict(texts))["f1"]
    ```

    Reference:
        [CoNLL-2003](https://aclanthology.org/W03-0419), section 3; seqeval.
    """
    if len(truth) != len(predicted):
        raise AlbertError(
            "`truth` and `predicted` must have a list of spans for each text. Received "
            f"{len(truth)} and {len(predicted)}."
        )
    seqeval = import_extra("seqeval.metrics")
    rows = zip(truth, predicted, strict=True)
    tagged = [[_tags(spans, _length(pair)) for spans in pair] for pair in rows]
    # seqeval warns of labels that are only predicted, and fails without any.
    if not any(map(any, (truth, predicted))):
        return {**_row({}), "types": {}}
    report = seqeval.classification_report(
        *map(list, zip(*tagged, strict=True)), output_dict=True, zero_division=0
    )
    averages = {
        name: report.pop(f"{name} avg") for name in ("micro", "macro", "weighted")
    }
    types = {label: _row(values) for label, values in sorted(report.items())}
    return {**_row(averages["micro"]), "types": types}


def _row(values):
    return {
        "precision": float(values.get("precision", 0.0)),
        "recall": float(values.get("recall", 0.0)),
        "f1": float(values.get("f1-score", 0.0)),
        "count": int(values.get("support", 0)),
    }


def _length(pair):
    return max((end for spans in pair for _, end, _ in spans), default=0)


def _tags(spans, length):
    """The BIO tag of each character."""
    tags = ["O"] * length
    for start, end, label in spans:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return tags
