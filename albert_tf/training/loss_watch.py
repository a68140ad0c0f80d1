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

    # Without this, Keras would wait for the loss of each step before the next one.
    async_safe = True

    def on_train_begin(self, logs: Any = None) -> None:
        # By step, because threads may add them in another order. Keras logs the mean
        # loss of the epoch so far.
        self._means: dict[int, float] | None = {}

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._means is not None and logs and "loss" in logs:
            self._means[batch] = float(logs["loss"])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        means, self._means = self._means, None
        if means is None or len(means) < LEAST_STEPS:
            return
        sums = [0.0, *(n * means[step] for n, step in enumerate(sorted(means), 1))]
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
