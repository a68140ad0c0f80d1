"""From which probability on a multi-label model gives a text a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from albert_tf.evaluation import best_thresholds
from albert_tf_lite.errors import AlbertError

DEFAULT_THRESHOLD = 0.5


class TunesThresholds:
    """A classifier whose `thresholds` are kept in its config."""

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        if {"num_classes", "multi_label"} & kwargs.keys():
            # The preset's thresholds are of its own head.
            kwargs.setdefault("thresholds", None)
        return super().from_preset(preset, load_weights, **kwargs)

    def tune_thresholds(self, x: Any, y: Any, batch_size: int | None = None) -> None:
        """Set the `thresholds` of a multi-label model to those of the best F1.

        Args:
            x, y: labelled texts that the model was not trained on, as for `fit`.
            batch_size: optional int.

        Raises:
            AlbertError: if the model is not multi-label, or `y` not as for `fit`.
        """
        if not self.multi_label:
            raise AlbertError("Only a model with multi_label=True has thresholds.")
        truth = self.targets(x, y)
        outputs = self.predict(x, batch_size, verbose=0)
        probabilities = self.answers(outputs)["probabilities"]
        self.thresholds = best_thresholds(truth, probabilities, DEFAULT_THRESHOLD)


def check_thresholds(
    thresholds: Sequence[float] | None, num_classes: int
) -> list[float] | None:
    """One number a class, or `None` for the default."""
    if thresholds is None:
        return None
    if len(thresholds) != num_classes:
        raise AlbertError(
            f"`thresholds` must have a number for each of the {num_classes} classes. "
            f"Received {len(thresholds)}: {list(thresholds)}"
        )
    return [float(threshold) for threshold in thresholds]
