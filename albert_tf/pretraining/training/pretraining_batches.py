"""Batches of records in NumPy."""

import math

import keras
import numpy as np

from albert_tf.pretraining.records.pretraining_records import PretrainingRecords
from albert_tf.pretraining.training.batch_plan import BatchPlan, EvaluationPlan
from albert_tf.pretraining.training.run import BatchSettings
from albert_tf.pretraining.training.sequences import draw, packed_lengths
from albert_tf.pretraining.training.stacked_batches import (
    Item,
    StackedBatches,
    trimmed_width,
    unflattened,
)
from albert_tf.training.optimizers import WarmupLinearDecay


class PretrainingBatches(StackedBatches):
    """Batches of records as `PretrainingModel` takes them.

    Args:
        records: a `PretrainingRecords`.
        settings: a `BatchSettings`.
        steps: optional int. The number of steps of the training.
        schedule: optional schedule of the learning rate.
        training: bool. `False` for each sequence once, with the same segments and masks
            each time.

    Returns:
        By index a dict of arrays [sequences, steps, ...], see `draw`, with `weights`
        (0 for a sequence that fills a batch up) and the values of a step repeated for
        its sequences: `seed` (2 ints), `progress` and, with a schedule,
        `learning_rate`.
    """

    def __init__(
        self,
        records: PretrainingRecords,
        settings: BatchSettings,
        steps: int | None = None,
        schedule: WarmupLinearDecay | None = None,
        training: bool = True,
    ):
        # Every device gets as many sequences of a batch.
        distribution = keras.distribution.distribution()
        devices = distribution.device_mesh.devices.size if distribution else 1
        plan_class = BatchPlan if training else EvaluationPlan
        plan = plan_class(
            packed_lengths(records),
            records.sequence_length,
            settings,
            math.lcm(settings.hosts, devices),
        )
        super().__init__(plan, steps, schedule)
        self.records = records
        self.hosts, self.host = settings.hosts, settings.host
        # TensorFlow takes batches of any length and size.
        self._trims = keras.backend.backend() == "tensorflow" and self.hosts == 1

    def __getitem__(self, call: int) -> Item:
        width, step_rows = self.plan[call]
        step_weights = np.ones(step_rows.shape, "float32")
        if not self._trims:
            # XLA would compile again for the last, smaller batch of a length, which
            # therefore has sequences of weight 0.
            missing = [(0, 0), (0, self.plan.size(width) - step_rows.shape[1])]
            step_rows = np.pad(step_rows, missing, mode="edge")
            step_weights = np.pad(step_weights, missing)
        # The hosts take turns. Sequences first, which devices share.
        sequence_rows = step_rows[:, self.host :: self.hosts].T
        weights = step_weights[:, self.host :: self.hosts].T
        if self._trims:
            longest = int(self.plan.lengths[sequence_rows].max())
            width = trimmed_width(longest, width)
        random = np.random.default_rng((self.plan.seed, call, self.host))
        sequences = draw(self.records, sequence_rows.reshape(-1), width, random)
        return {
            **unflattened(sequences, sequence_rows.shape),
            "weights": weights,
            **self.step_values(call, len(sequence_rows)),
        }
