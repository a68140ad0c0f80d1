"""An order of batches that an interrupted training resumes."""

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.training.run_state import TrainingState


class BatchOrder(keras.callbacks.Callback):
    """A random order of batches that depends on a seed and the number of the epoch.

    Pass it to `fit` as `shuffle` and as a callback. The first `skip` batches of every
    epoch are left out, to resume within one.
    """

    def __init__(self, seed: int, skip: int = 0):
        super().__init__()
        self.seed, self.skip = seed, skip
        # Datasets run on the CPU.
        with tf.device("cpu"):
            self.epoch_seed = tf.Variable(0, dtype=tf.int64)

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        random = np.random.default_rng([self.seed, epoch])
        self.epoch_seed.assign(random.integers(2**62))


def remaining_batches(
    state: TrainingState, seed: int, callbacks: Iterable[keras.callbacks.Callback]
) -> Callable[[], dict[str, Any]]:
    """Return the `data` of `TrainingState.fit` for examples in memory.

    Args:
        state: the state, which is one of the callbacks or none.
        seed: int, the seed of the order.
        callbacks: those of `fit`.
    """
    others = list(callbacks)

    def data() -> dict[str, Any]:
        order = BatchOrder(seed, skip=state.step)
        return {"shuffle": order, "callbacks": [order, *others]}

    return data
