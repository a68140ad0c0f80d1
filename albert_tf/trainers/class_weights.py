"""The `class_weight` of `fit`."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from albert_tf.trainers.examples import Examples
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_positions, class_positions

# Weights by class, or those that are computed from the labels.
ClassWeight: TypeAlias = dict[Any, float] | Literal["balanced"] | None
BALANCED = "balanced"


def check_class_weight(class_weight: ClassWeight, examples: Examples) -> None:
    """Raise unless `class_weight` can be used with the examples."""
    if isinstance(class_weight, str) and class_weight == BALANCED:
        if examples.kind == "dataset":
            raise AlbertError(
                'class_weight="balanced" counts the labels of lists; those of a '
                "dataset are unknown before training. Count them from a list: "
                "class_weight=albert_tf.tools.class_weights(y, labels)."
            )
    elif class_weight is not None and not isinstance(class_weight, dict):
        raise AlbertError(
            '`class_weight` should be "balanced", or a dict of weights by class. '
            f"Received: {class_weight!r:.80}"
        )


def weights_by_id(
    class_weight: dict[Any, float], num_classes: int, labels: Sequence | None
) -> dict[int, float]:
    """Return weights by class id, for weights by label or by class id."""
    classes = list(class_weight)
    if labels:
        ids = class_positions(classes, labels, "class_weight")
    else:
        ids = check_positions(classes, num_classes, "class_weight")
    # Keras fails on classes without a weight.
    weights = dict.fromkeys(range(num_classes), 1.0)
    weights.update(zip(ids.tolist(), class_weight.values(), strict=True))
    return weights


def balanced_weights(ids: Sequence[int] | np.ndarray, num_classes: int) -> list[float]:
    """Return weights inversely proportional to how often each class id occurs.

    They are those of scikit-learn's `class_weight="balanced"`.
    """
    counts = np.bincount(np.asarray(ids, int), minlength=num_classes)
    share = len(ids) / np.count_nonzero(counts)
    return [float(share / max(count, 1)) for count in counts]
