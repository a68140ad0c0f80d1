"""Scores on a terminal."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from albert_tf_cli.shared.console import console
from albert_tf_cli.shared.score_tables import (
    Row,
    confusion_rows,
    coverage_rows,
    format_cell,
    score_rows,
    worst_classes,
)

# The most rows of the scores of classes, and the most pairs of confused classes.
MOST_ROWS = 40
MOST_PAIRS = 20


def print_scores(scores: Mapping[str, Any]) -> None:
    """Print scores one per line, and the dicts in them as the rows of a table."""
    first, *others = score_rows(scores)
    if first[""]:
        others.insert(0, first)
    else:
        for name, value in first.items():
            if name:
                line = f"{name.replace('_', ' ')} {format_cell(value)}"
                console.print(line, soft_wrap=True)
    # One table for neighbours with the same columns.
    for _, group in itertools.groupby(others, list):
        shown, note = worst_classes(list(group), MOST_ROWS)
        console.print(_table(shown))
        if note:
            console.print(f"{note} --json has all.", soft_wrap=True)
    if rows := coverage_rows(scores):
        console.print("Answered, and how well, with --abstain:")
        console.print(_table(rows))
    _print_confusion(scores)


def _print_confusion(scores):
    """Print the confusion matrix, or the most confused classes if it is too wide."""
    if rows := confusion_rows(scores):
        matrix = _table(rows)
        if _fits(matrix):
            console.print(matrix)
            return
    if pairs := scores.get("confused_pairs"):
        console.print("The most confused pairs of classes:")
        console.print(_table(pairs[:MOST_PAIRS]))


def _table(rows: Sequence[Row]) -> Table:
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(format_cell, row.values()))
    return table


def _fits(table):
    """Return whether no cell of a table is cut at the width of the terminal."""
    unlimited = console.options.update(max_width=10**6)
    return console.measure(table, options=unlimited).maximum <= console.width
