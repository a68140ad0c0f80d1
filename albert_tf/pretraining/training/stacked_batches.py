"""Batches of several steps, which one call of the device trains on."""

import abc
from typing import Any

import keras
import numpy as np

from albert_tf.pretraining.records.shard_files import Arrays
from albert_tf.pretraining.training.batch_plan import BatchPlan
from albert_tf.training.optimizers import WarmupLinearDecay

# A nested dict of arrays [sequences, steps, ...]: sequences first, which devices and
# hosts share.
Item = dict[str, Any]


class StackedBatches(abc.ABC):
    """Base class of the items of a training: by number of the call, its batches.

    They depend on the data, the settings and the number only, so that a training
    resumes exactly, and not on the backend of Keras.

    Args:
        plan: a `BatchPlan`.
        steps: optional int. The number of steps of the training, in which the rate of
            the masks changes to its last value.
        schedule: optional schedule of the learning rate.
    """

    def __init__(
        self,
        plan: BatchPlan,
        steps: int | None = None,
        schedule: WarmupLinearDecay | None = None,
    ):
        self.plan, self.steps, self.schedule = plan, steps, schedule

    def __len__(self) -> int:
        """Return the number of items per epoch."""
        return self.plan.calls_per_epoch

    @abc.abstractmethod
    def __getitem__(self, call: int) -> Item:
        """Return the item of a call."""

    def step_values(self, call: int, count: int) -> Arrays:
        """Return values of the steps of a call, each repeated for `count` sequences.

        They are `seed` [count, steps, 2], `progress` and, with a schedule,
        `learning_rate` [count, steps].
        """
        size = len(self.plan[call].rows)
        steps = call * size + np.arange(size)
        progress = np.ones(size)
        if self.steps is not None:
            progress = np.minimum(steps / self.steps, 1.0)
        seeds = np.stack([np.full(size, self.plan.seed), steps], axis=1)
        values = {
            "seed": seeds.astype("int32"),
            "progress": progress.astype("float32"),
        }
        if self.schedule is not None:
            rates = keras.ops.convert_to_numpy(self.schedule(steps))
            values["learning_rate"] = rates.astype("float32")
        return {
            name: np.repeat(array[None], count, axis=0)
            for name, array in values.items()
        }


def unflattened(arrays: Arrays, shape: tuple[int, int]) -> Arrays:
    """Return arrays [sequences * steps, ...] as [sequences, steps, ...]."""
    return {
        name: array.reshape(*shape, *array.shape[1:]) for name, array in arrays.items()
    }


def trimmed_width(longest: int, width: int) -> int:
    """Return the next multiple of four, which is at most the padded length."""
    return min(-(-longest // 4) * 4, width)
