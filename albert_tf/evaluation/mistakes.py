"""The worst mistakes of a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import whole_numbers


def worst_mistakes(
    probabilities: Any, truth: Any, count: int = 50
) -> list[dict[str, Any]]:
    """Return the wrongly classified examples, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth: int array [examples], the true classes.
        count: int, the maximum number of examples.

    Returns:
        A list of dicts, sorted by the probability of the true class: `index` of the
        example, `label_id` and `predicted_id`, and the probability of each,
        `label_probability` and `predicted_probability`.

    Raises:
        AlbertError: if the probabilities of an example do not sum to 1.

    Example:

    >>> worst_mistakes([[0.9, 0.1], [0.7, 0.3]], [0, 1])[0]["index"]
    1
    """
    probabilities = np.asarray(probabilities, "float64")
    truth = whole_numbers(truth, "truth")
    # Sums of bfloat16 are off by about 1 %.
    if not np.allclose(probabilities.sum(axis=-1), 1, atol=0.05):
        raise AlbertError(
            "The `probabilities` of each example should sum to 1. For the logits of a "
            'classifier, pass `answers(outputs)["probabilities"]`.'
        )
    given = probabilities[np.arange(len(truth)), truth]
    predicted = probabilities.argmax(axis=1)
    order = np.argsort(given, kind="stable")
    return [
        {
            "index": int(i),
            "label_id": int(truth[i]),
            "predicted_id": int(predicted[i]),
            "label_probability": float(given[i]),
            "predicted_probability": float(probabilities[i, predicted[i]]),
        }
        for i in order[predicted[order] != truth[order]][:count]
    ]
