"""An order of batches that an interrupted training resumes."""

import keras
import numpy as np
import tensorflow as tf


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
