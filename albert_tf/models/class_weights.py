"""`class_weight` of `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError


class WeighsClasses:
    """A classifier whose `fit` takes `class_weight`."""

    def fit(self, x=None, y=None, *args, class_weight=None, **kwargs):
        """As `FitsTexts.fit`.

        Args:
            class_weight: optional dict of weights by class id or name, or
                `"balanced"`: inverse to how often each class occurs in `y`.
        """
        if class_weight is not None:
            if self.multi_label:
                raise AlbertError(
                    "`class_weight` is for texts with one class each. Give a "
                    "multi-label model a `sample_weight`, or a loss of your own."
                )
            ids = None if y is None else self.targets(x, y)
            kwargs["class_weight"] = class_weights(class_weight, ids, self.class_names)
        return super().fit(x, y, *args, **kwargs)


def class_weights(given: Any, y: np.ndarray | None, names: list[str]) -> dict:
    """The weight of each class by its id, as `keras.Model.fit` takes it.

    Args:
        given: `"balanced"`, or a dict of weights by class id or name; a class that is
            not in it has weight 1.
        y: int array [examples], the classes of the texts, for `"balanced"`: the
            weights are then inverse to how often each class occurs, as in scikit-learn.
        names: the names of the classes.
    """
    if isinstance(given, str):
        if given != "balanced" or y is None:
            raise AlbertError(
                '`class_weight` must be a dict, or "balanced" for classes in a list or '
                f"array. Received: {given!r}"
            )
        counts = np.bincount(y, minlength=len(names))
        share = len(y) / np.count_nonzero(counts)
        return {i: share / max(count, 1) for i, count in enumerate(counts)}
    ids = {name: i for i, name in enumerate(names)}
    weights = dict.fromkeys(range(len(names)), 1.0)
    for name, weight in dict(given).items():
        position = ids.get(name, name)
        if position not in weights:
            raise AlbertError(
                f"`class_weight` has the class {name!r}, which is not among {names}."
            )
        weights[position] = float(weight)
    return weights
