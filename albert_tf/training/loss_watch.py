"""Warn if a training does not begin to learn."""

import warnings
from typing import Any

import keras

# Minimum fall of the loss in the first epoch, and minimum length of the epoch in steps.
LEAST_FALL = 0.01
LEAST_STEPS = 9


class LossWatch(keras.callbacks.Callback):
    """Warn if the loss has not fallen in the first epoch.

    Compares the mean loss of the first and the last third of the epoch. An untrained
    head starts at the loss of guessing, and stays there if the learning rate is too
    low, or so high that it ruins the encoder.
    """

    def on_train_begin(self, logs: Any = None) -> None:
        # Sums of the loss by step; Keras logs its mean over the epoch so far.
        self._sums: list[float] | None = [0.0]

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._sums is not None and logs and "loss" in logs:
            self._sums.append(float(logs["loss"]) * len(self._sums))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        sums, self._sums = self._sums, None
        if sums is None or len(sums) <= LEAST_STEPS:
            return
        third = (len(sums) - 1) // 3
        first = sums[third] / third
        last = (sums[-1] - sums[-1 - third]) / third
        if last > (1 - LEAST_FALL) * first:
            warnings.warn(
                f"The loss has not fallen in the first epoch: {first:.4f} in its first "
                f"third, {last:.4f} in its last. Check that labels match their texts, "
                "and try more epochs, a smaller batch or another learning rate: about "
                "5e-4 for small models from random weights, 1e-5 for large ones from a "
                "checkpoint.",
                stacklevel=2,
            )
