"""Answers as dicts of plain Python: those of `albert_tf.pipeline` and `albert-tf`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError


def ranked(
    names: Sequence[str], probabilities: np.ndarray, top_k: int | None = 1
) -> list:
    """`label` and `score` of the likeliest class of each text.

    Args:
        names: list of strings, the classes.
        probabilities: float array [texts, classes].
        top_k: int. Of more than one a list, the likeliest first; `None` for all.
    """
    return best_of([_sorted(names, row) for row in probabilities], top_k)


def best_of(answers: Sequence[list], top_k: int | None = 1) -> list:
    """Of lists with the best first, the first; with `top_k` other than 1 so many."""
    check_top_k(top_k)
    return [row[0] if top_k == 1 else row[:top_k] for row in answers]


def chosen_of(
    names: Sequence[str],
    probabilities: np.ndarray,
    chosen: np.ndarray,
    top_k: int | str | None = "auto",
) -> list[list[dict[str, Any]]]:
    """`label` and `score` of each class that a text has, or of the `top_k` likeliest.

    `probabilities` and `chosen`, which it has, are arrays [texts, classes].
    """
    if top_k != "auto":
        check_top_k(top_k)
        return [_sorted(names, row)[:top_k] for row in probabilities]
    names = np.array(names, dtype=object)
    rows = zip(probabilities, chosen, strict=True)
    return [_sorted(names[has], row[has]) for row, has in rows]


def entities_of(texts: Sequence[str], spans: Sequence) -> list[list[dict[str, Any]]]:
    """`entity_group`, `word`, `start`, `end` and `score` of the entities of each text.

    `spans` are, for each text, (start, end, label, score).
    """
    return [
        [
            {
                "entity_group": label,
                "word": text[start:end],
                "start": start,
                "end": end,
                "score": score,
            }
            for start, end, label, score in found
        ]
        for text, found in zip(texts, spans, strict=True)
    ]


def scores_of(values: np.ndarray) -> list[dict[str, float]]:
    """`score`, the number of each text or pair."""
    return [{"score": float(value)} for value in values]


def cosines_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The cosine of each two vectors, a float array [pairs]; both [pairs, width]."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.sum(first * second, axis=1) / np.maximum(lengths, 1e-12)


def orders_of(in_order: np.ndarray) -> list[dict[str, Any]]:
    """`label`, "in_order" or "swapped", and `score`, of how likely the first is."""
    return [
        {"label": "in_order", "score": score}
        if score >= 0.5
        else {"label": "swapped", "score": 1 - score}
        for score in map(float, in_order)
    ]


def check_top_k(top_k: int | None) -> None:
    """Raise a `ValueError` unless it is a number of answers, or `None` for all."""
    if top_k is not None and (not isinstance(top_k, int) or top_k < 1):
        raise AlbertError(
            f"`top_k` should be a number from 1 on, or None for all. Received: {top_k}"
        )


def _sorted(names, scores):
    order = np.argsort(-scores, kind="stable")
    return [{"label": str(names[i]), "score": float(scores[i])} for i in order]


# By task, a function of texts, what `ExportedModel.predict` gives for them, the
# settings of the file and the options of the task.
PLAIN_ANSWERS: dict[str, Callable[..., list]] = {
    "text-classification": lambda texts, found, settings, top_k=1: ranked(
        settings["labels"], found["probabilities"], top_k
    ),
    "multi-label": lambda texts, found, settings, top_k="auto": chosen_of(
        settings["labels"], found["probabilities"], found["chosen"], top_k
    ),
    "regression": lambda texts, found, settings: scores_of(found["score"]),
    "token-classification": lambda texts, found, settings: entities_of(
        texts, found["spans"]
    ),
    "text-embedding": lambda texts, found, settings: [
        {"embedding": vector} for vector in found["embedding"].tolist()
    ],
    "sentence-order": lambda texts, found, settings: orders_of(found["in_order"]),
}
