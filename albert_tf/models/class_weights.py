"""Weights of classes that occur in different numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.preprocessing.examples import class_ids


def class_weights(y: Any, labels: Sequence[str] | None = None) -> dict[int, float]:
    """Return weights inversely proportional to how often each class occurs.

    They are those of scikit-learn's `class_weight="balanced"`, as `fit` takes them.

    Args:
        y: int array or list of class ids, or list of names.
        labels: optional list of strings, the names of the classes.

    Returns:
        A dict of floats by class id.

    Raises:
        AlbertError: if `y` is empty, or a name is not among `labels`.

    Example:
    ```python
    weights = albert_tf.models.class_weights(labels, classifier.labels)
    classifier.fit(texts, labels, class_weight=weights)
    ```
    """
    ids = class_ids(y, y, len(labels) if labels else None, labels)
    counts = np.bincount(ids, minlength=len(labels or ()))
    share = len(ids) / np.count_nonzero(counts)
    return {i: float(share / max(count, 1)) for i, count in enumerate(counts)}
