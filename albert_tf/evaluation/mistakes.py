"""The examples a model gets most wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError

# Of a probability that rounds to 0 the logarithm is still a number.
LEAST_PROBABILITY = 1e-12


def losses(probabilities: Any, truth: Any) -> np.ndarray:
    """The cross-entropy of each example, float64 [examples]."""
    given = np.asarray(probabilities, "float64")[np.arange(len(truth)), truth]
    return -np.log(np.maximum(given, LEAST_PROBABILITY))


def worst_mistakes(
    probabilities: Any, truth: Any, count: int | None = 50
) -> list[dict[str, Any]]:
    """The examples of another class than the most probable one, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth: int array [examples], the true classes.
        count: int, the most to give; `None` for all.

    Returns:
        A list of dicts, by falling loss: `index` of the example, `label_id` and
        `predicted_id`, the probability of each (`label_probability`,
        `predicted_probability`), and `loss`, the cross-entropy in nats.

    Raises:
        AlbertError: if the arrays do not fit together.

    Example:

    >>> worst_mistakes([[0.9, 0.1], [0.7, 0.3]], [0, 1])[0]["index"]
    1
    """
    probabilities, truth = check_classes(probabilities, truth)
    predicted = probabilities.argmax(axis=1)
    loss = losses(probabilities, truth)
    order = np.argsort(-loss, kind="stable")
    wrong = order[predicted[order] != truth[order]][:count]
    return [
        {
            "index": int(i),
            "label_id": int(truth[i]),
            "predicted_id": int(predicted[i]),
            "label_probability": float(probabilities[i, truth[i]]),
            "predicted_probability": float(probabilities[i, predicted[i]]),
            "loss": float(loss[i]),
        }
        for i in wrong
    ]


def worst_multi_label_mistakes(
    probabilities: Any, truth: Any, chosen: Any, count: int | None = 50
) -> list[dict[str, Any]]:
    """The examples with classes missed or wrongly given, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth, chosen: arrays of 0 and 1 [examples, classes].
        count: int, the most to give; `None` for all.

    Returns:
        A list of dicts, by falling loss: `index`, `missed` and `wrong`, dicts of the
        probability by class id, and `loss`, the sum of the classes' binary
        cross-entropies in nats.
    """
    given = np.asarray(probabilities, "float64")
    truth, chosen = np.asarray(truth, bool), np.asarray(chosen, bool)
    if not given.shape == truth.shape == chosen.shape or given.ndim != 2:
        raise AlbertError(
            "`probabilities`, `truth` and `chosen` should have the shape [examples, "
            f"classes]. Received {given.shape}, {truth.shape} and {chosen.shape}."
        )
    right = np.maximum(np.where(truth, given, 1 - given), LEAST_PROBABILITY)
    loss = -np.log(right).sum(axis=1)
    order = np.argsort(-loss, kind="stable")
    wrong = order[(truth != chosen).any(axis=1)[order]][:count]

    def by_class(i, is_listed):
        return {int(j): float(given[i, j]) for j in np.flatnonzero(is_listed[i])}

    return [
        {
            "index": int(i),
            "missed": by_class(i, truth & ~chosen),
            "wrong": by_class(i, chosen & ~truth),
            "loss": float(loss[i]),
        }
        for i in wrong
    ]


def worst_entity_mistakes(
    truth: Sequence[Sequence[tuple]],
    predicted: Sequence[Sequence[tuple]],
    count: int | None = 50,
) -> list[dict[str, Any]]:
    """The texts with entities missed or wrongly found, the worst first.

    Args:
        truth: a list of (start, end, label) for each text.
        predicted: a list of (start, end, label, score) for each text.
        count: int, the most to give; `None` for all.

    Returns:
        A list of dicts: `index`, `missed` (spans as in `truth`), `wrong` (spans as in
        `predicted`), and `loss`: the scores of the wrong ones, and 1 for each that was
        missed.
    """
    found = []
    for index, (spans, given) in enumerate(zip(truth, predicted, strict=True)):
        right, seen = {tuple(x) for x in spans}, {tuple(x[:3]) for x in given}
        missed = [tuple(x) for x in spans if tuple(x) not in seen]
        wrong = [tuple(x) for x in given if tuple(x[:3]) not in right]
        loss = len(missed) + sum(float(score) for *_, score in wrong)
        if missed or wrong:
            row = {"index": index, "missed": missed, "wrong": wrong, "loss": loss}
            found.append(row)
    return sorted(found, key=lambda row: -row["loss"])[:count]


def check_classes(probabilities: Any, truth: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays, if they fit together."""
    probabilities = check_probabilities(probabilities)
    truth = np.asarray(truth)
    if truth.shape != probabilities.shape[:1] or truth.dtype.kind not in "iu":
        raise AlbertError(
            "`truth` should be ints, the class of each of the "
            f"{len(probabilities)} examples. Received shape {truth.shape} and type "
            f"{truth.dtype}."
        )
    if len(truth) and not 0 <= truth.min() <= truth.max() < probabilities.shape[1]:
        raise AlbertError(
            f"`truth` should lie between 0 and {probabilities.shape[1] - 1}. Received "
            f"{truth.min()} to {truth.max()}."
        )
    return probabilities, truth


def check_probabilities(probabilities: Any) -> np.ndarray:
    """As an array [examples, classes] whose rows sum to 1, if they do."""
    probabilities = np.asarray(probabilities, "float64")
    if probabilities.ndim != 2:
        raise AlbertError(
            "`probabilities` should have the shape [examples, classes]. Received "
            f"{probabilities.shape}."
        )
    # Sums of bfloat16 are off by some 1%.
    sums = probabilities.sum(axis=1)
    if not np.allclose(sums, 1, atol=0.05) or (probabilities < 0).any():
        raise AlbertError(
            "The `probabilities` of each example should sum to 1. Of a classifier's "
            'logits, `answers(outputs)["probabilities"]` gives them.'
        )
    return probabilities
