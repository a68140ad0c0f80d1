"""Answers of models, as arrays and as dicts of plain Python."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from albert_tf_lite.inputs import check_integer
from albert_tf_lite.spans import answer_arrays, answer_dicts

# Vectors of a corpus whose cosines are computed together.
ROWS_AT_A_TIME = 2**16


class Task(NamedTuple):
    """Functions that turn the outputs of a task into its answers."""

    # (outputs, settings) -> arrays.
    arrays: Callable[[Any, dict[str, Any]], dict[str, Any]]
    # (texts, outputs, settings, options of the task) -> dicts.
    dicts: Callable[..., list]
    # The parts of an example, and how many of them it must have.
    fields: tuple[str, ...] = ("text", "text_pair")
    num_required: int = 1


# === Arrays, named as the outputs of a SavedModel ===


def _softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _sigmoid(x):
    # In this form no exponential overflows.
    return (np.tanh(x / 2) + 1) / 2


_ACTIVATIONS = {"softmax": _softmax, "sigmoid": _sigmoid, None: lambda x: x}


def classify(outputs: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return `label`, `label_id` [batch] and `probabilities` [batch, classes]."""
    probabilities = _ACTIVATIONS[settings["activation"]](outputs)
    label_id = probabilities.argmax(axis=-1).astype("int32")
    label = np.array(settings["labels"])[label_id]
    return {"label": label, "label_id": label_id, "probabilities": probabilities}


def classify_multi_label(
    outputs: np.ndarray, settings: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return `labels` (or ""), `chosen`, `probabilities`, each [batch, classes]."""
    probabilities = _ACTIVATIONS[settings["activation"]](outputs)
    chosen = probabilities >= np.array(settings["thresholds"], "float32")
    labels = np.where(chosen, np.array(settings["labels"]), "")
    return {"labels": labels, "chosen": chosen, "probabilities": probabilities}


def choose(logits: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return `label_id` [batch] and `probabilities` [batch, choices]."""
    label_id = logits.argmax(axis=-1).astype("int32")
    return {"label_id": label_id, "probabilities": _softmax(logits)}


def order_probability(
    outputs: np.ndarray, settings: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return `in_order` [batch], the probability that the second text follows."""
    return {"in_order": _softmax(outputs)[:, 0]}


# === Dicts, with the keys of transformers ===


def check_top_k(top_k: int | None) -> None:
    """Raise unless `top_k` is a number of answers, or `None` for all."""
    if top_k is not None:
        check_integer("top_k", top_k)


def best_of(answers: Sequence[list], top_k: int | None = 1) -> list:
    """Return the first of each list, or with another `top_k` the first `top_k`."""
    check_top_k(top_k)
    return [row[0] if top_k == 1 else row[:top_k] for row in answers]


def rank_classes(
    names: Sequence[str], probabilities: np.ndarray, top_k: int | None = 1
) -> list:
    """Return `label` and `score` of the best classes, as `best_of`."""
    return best_of([_sorted(names, row) for row in probabilities], top_k)


def rank_chosen(
    names: Sequence[str], found: dict[str, np.ndarray], top_k: Any = "auto"
) -> list[list[dict[str, Any]]]:
    """Return `label` and `score` of the chosen classes, or of the `top_k` best.

    `found` is what `classify_multi_label` returns.
    """
    probabilities, chosen = found["probabilities"], found["chosen"]
    if top_k != "auto":
        check_top_k(top_k)
        return [_sorted(names, row)[:top_k] for row in probabilities]
    rows = zip(probabilities, chosen, strict=True)
    return [_sorted(np.array(names)[has], row[has]) for row, has in rows]


def rank_choices(choices: Sequence[Sequence[str]], logits: np.ndarray) -> list[list]:
    """Return `label`, `label_id` and `score` of all choices, the best first."""
    return [
        [
            {"label": texts[i], "label_id": i, "score": float(row[i])}
            for i in np.argsort(-row[: len(texts)], kind="stable").tolist()
        ]
        for texts, row in zip(choices, _softmax(logits), strict=True)
    ]


def entity_dicts(texts: Sequence[str], spans: Sequence) -> list[list[dict[str, Any]]]:
    """Return a dict for each span (start, end, label, score) of each text."""
    names = ("entity_group", "word", "start", "end", "score")
    return [
        [
            dict(zip(names, (label, text[start:end], start, end, score), strict=True))
            for start, end, label, score in found
        ]
        for text, found in zip(texts, spans, strict=True)
    ]


def score_dicts(values: np.ndarray) -> list[dict[str, float]]:
    """Return each number as the `score` of a dict."""
    return [{"score": float(value)} for value in values]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each two vectors, rows of [pairs, width], as float32."""
    return _in_range(np.sum(_unit_vectors(first) * _unit_vectors(second), axis=1))


def all_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosines of rows of two arrays, float32 [first, second].

    They are symmetric if both arrays are equal.
    """
    units = _unit_vectors(first)
    found = np.empty((len(first), len(second)), "float32")
    # In parts, because a large corpus as float64 takes twice its memory.
    for start in range(0, len(second), ROWS_AT_A_TIME):
        part = _unit_vectors(second[start : start + ROWS_AT_A_TIME])
        found[:, start : start + len(part)] = _in_range(units @ part.T)
    if np.array_equal(first, second):
        found = np.maximum(found, found.T)
    return found


def _unit_vectors(vectors):
    """Return vectors of length 1, those of zeros as zeros, as float64.

    In float16 the squares would overflow, and in float32 cosines would exceed 1.
    """
    vectors = np.asarray(vectors).astype("float64")
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1.0, lengths)


def _in_range(cosines):
    return np.clip(cosines, -1.0, 1.0).astype("float32")


def order_dicts(in_order: np.ndarray) -> list[dict[str, Any]]:
    """Return `label`, "in_order" or "swapped", and its `score`."""
    return [
        {"label": "in_order", "score": score}
        if score >= 0.5
        else {"label": "swapped", "score": 1 - score}
        for score in map(float, in_order)
    ]


def _sorted(names, scores):
    order = np.argsort(-scores, kind="stable")
    return [{"label": str(names[i]), "score": float(scores[i])} for i in order]


# === Tasks of exported files ===

ANSWERS = {
    "text-classification": Task(
        classify,
        lambda texts, outputs, settings, top_k=1: rank_classes(
            settings["labels"], classify(outputs, settings)["probabilities"], top_k
        ),
    ),
    "multi-label": Task(
        classify_multi_label,
        lambda texts, outputs, settings, top_k="auto": rank_chosen(
            settings["labels"], classify_multi_label(outputs, settings), top_k
        ),
    ),
    "regression": Task(
        lambda outputs, settings: {"score": outputs[:, 0]},
        lambda texts, outputs, settings: score_dicts(outputs[:, 0]),
    ),
    "token-classification": Task(
        lambda spans, settings: {"spans": spans},
        lambda texts, spans, settings: entity_dicts(texts, spans),
        ("text",),
    ),
    "question-answering": Task(
        answer_arrays, answer_dicts, ("question", "context"), num_required=2
    ),
    "multiple-choice": Task(
        choose,
        lambda texts, logits, settings, top_k=1: best_of(
            rank_choices(texts[-1], logits), top_k
        ),
        ("context", "question", "choices"),
        num_required=3,
    ),
    "text-embedding": Task(
        lambda outputs, settings: {"embedding": outputs},
        lambda texts, outputs, settings: (
            score_dicts(cosines(*outputs))
            if isinstance(texts, tuple)
            else [{"embedding": vector} for vector in outputs.tolist()]
        ),
    ),
    "sentence-order": Task(
        order_probability,
        lambda texts, outputs, settings: order_dicts(
            order_probability(outputs, settings)["in_order"]
        ),
        num_required=2,
    ),
}
