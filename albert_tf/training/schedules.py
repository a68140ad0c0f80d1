from typing import Any

import keras
from keras import ops

from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly from 0 and falls linearly to 0.

    Args:
        peak_learning_rate: float.
        total_steps: int. Steps until 0 is reached.
        warmup_steps: int. Steps until the peak is reached.

    Reference:
        google-research/bert `optimization.py`, `create_optimizer`.
    """

    def __init__(self, peak_learning_rate: float, total_steps: int, warmup_steps: int):
        if not 0 <= warmup_steps <= total_steps:
            raise AlbertError(
                "`warmup_steps` must lie between 0 and `total_steps`. Received: "
                f"warmup_steps={warmup_steps}, total_steps={total_steps}"
            )
        self.peak_learning_rate = peak_learning_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        # Counted from 1, so that the first step already learns something.
        step = ops.cast(step, "float32") + 1.0
        warmup = step / max(self.warmup_steps, 1)
        decay = (self.total_steps + 1 - step) / (
            self.total_steps + 1 - self.warmup_steps
        )
        return self.peak_learning_rate * ops.clip(ops.minimum(warmup, decay), 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }
