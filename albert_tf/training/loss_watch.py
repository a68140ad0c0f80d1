"""Warn if a training does not begin to learn."""

from __future__ import annotations

import warnings

import keras

# Minimum fall of the loss in the first epoch, a share, and steps to compare.
LEAST_FALL = 0.01
LEAST_STEPS = 9


def with_loss_watch(callbacks):
    """Add a `LossWatch` to callbacks in any form that `keras.Model.fit` accepts."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.append(LossWatch())
        return callbacks
    return [*keras.tree.flatten(callbacks or []), LossWatch()]


class LossWatch(keras.callbacks.Callback):
    """Warn if the loss has not fallen in the first epoch.

    Compares the mean of the first and the last third of the epoch: an untrained head
    starts at the loss of guessing, and stays there if the rate is too low, or so high
    that it ruins the encoder. Epochs of fewer than 9 steps are not compared.
    """

    def on_train_begin(self, logs=None):
        # Sums of the loss by step; Keras logs its mean over the epoch so far.
        self._sums = [0.0]

    def on_train_batch_end(self, batch, logs=None):
        if self._sums is not None and logs and "loss" in logs:
            self._sums.append(float(logs["loss"]) * len(self._sums))

    def on_epoch_end(self, epoch, logs=None):
        sums, self._sums = self._sums, None
        steps = len(sums or [0.0]) - 1
        if steps < LEAST_STEPS:
            return
        third = steps // 3
        first = sums[third] / third
        last = (sums[-1] - sums[-1 - third]) / third
        if last > (1 - LEAST_FALL) * first:
            warnings.warn(
                f"The loss has not fallen in the first epoch: {first:.4f} in its first "
                f"third, {last:.4f} in its last. If the next epoch is no better, try "
                f"another learning rate ({self._rate()} now; about 5e-4 for small "
                "models from random weights, 1e-5 for large ones from a checkpoint), "
                "more epochs or a smaller batch, and check that the labels match the "
                "texts.",
                stacklevel=2,
            )

    def _rate(self):
        settings = getattr(self.model, "_auto_settings", None)
        rate = settings and settings["learning_rate"]
        return f"{rate or float(self.model.optimizer.learning_rate):.0e}"
