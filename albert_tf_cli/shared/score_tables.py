"""Scores of a task as the rows of tables, short ones with a thousand classes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]

# Rows of scikit-learn below those of the classes.
_AVERAGES = {"micro avg", "macro avg", "weighted avg", "samples avg"}


def score_rows(scores: Mapping[str, Any], name: str = "") -> Iterator[Row]:
    """Yield the single values of a dict, then those of the dicts in it, as rows.

    The cell "" of a row is the name of its dict.
    """
    values = {k: v for k, v in scores.items() if not isinstance(v, dict | list)}
    if values:
        yield {"": name, **values}
    for key, value in scores.items():
        if isinstance(value, dict):
            yield from score_rows(value, key)


def worst_classes(rows: Sequence[Row], most: int) -> tuple[list[Row], str]:
    """Return at most so many classes, those of the lowest F1, and a note about them.

    The order of the rows stays. Classes without an example come last, because nothing
    is known about them. Averages are kept.
    """
    classes = [row for row in rows if row[""] not in _AVERAGES]
    if len(classes) <= most:
        return list(rows), ""

    def rank(row: Row) -> tuple[bool, float, float]:
        count = _first(row, "support", "count", default=1)
        return not count, _first(row, "f1-score", "f1", default=0), -count

    worst = {id(row) for row in sorted(classes, key=rank)[:most]}
    kept = [row for row in rows if id(row) in worst or row[""] in _AVERAGES]
    return kept, f"These are the {most} of {len(classes):,} classes of the lowest F1."


def _first(row: Row, *names: str, default: float) -> float:
    """Return the first of the named cells that a row has."""
    return next((row[name] for name in names if name in row), default)


def confusion_rows(scores: Mapping[str, Any]) -> list[Row]:
    """Return the rows of the confusion matrix, if the scores have one."""
    matrix = scores.get("confusion_matrix", [])
    # The scores of the classes come first.
    labels = list(scores)[: len(matrix)]
    return [
        {"truth \\ predicted": label, **dict(zip(labels, counts, strict=True))}
        for label, counts in zip(labels, matrix, strict=True)
    ]


def coverage_rows(scores: Mapping[str, Any]) -> list[Row]:
    """Return the rows of the answers from each score on, if the scores have them."""
    rows = scores.get("coverage", [])
    return [{**row, "abstain": f"{row['abstain']:g}"} for row in rows]


def format_cell(value: object) -> str:
    """Format a value of a row, `None` as a dash."""
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
