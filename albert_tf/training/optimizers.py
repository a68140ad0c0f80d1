"""The optimizer recipe ALBERT is fine-tuned with."""

from typing import Any

import keras

from albert_tf.training.schedules import WarmupLinearDecay

WARMUP_SHARE = 0.1
# Biases and LayerNorm are not decayed (`exclude_from_weight_decay` of the
# original `run_classifier.py`).
NOT_DECAYED = ("bias", "gamma", "beta")


@keras.saving.register_keras_serializable(package="albert_tf")
class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW that decays neither biases nor LayerNorm.

    A class, since Keras does not save what `exclude_from_weight_decay` was given.

    Args:
        task_settings: optional dict, what a task that made it was compiled with.
        *args, **kwargs: as `keras.optimizers.AdamW` takes them.
    """

    def __init__(self, *args, task_settings: dict | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        self.task_settings = task_settings
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)

    def get_config(self):
        return {**super().get_config(), "task_settings": self.task_settings}


def fine_tuning_learning_rate(hidden_dim: int) -> float:
    """A learning rate by size: albert_zh's README for tiny, the paper for larger ones.

    That of micro (256) was the best of three on the demo's dev set.
    """
    for width, rate in ((128, 1e-3), (256, 5e-4), (384, 1e-4), (1024, 3e-5)):
        if hidden_dim <= width:
            return rate
    return 1e-5


def adamw(
    learning_rate: float,
    total_steps: int | None = None,
    warmup_share: float = WARMUP_SHARE,
    **kwargs: Any,
) -> AdamW:
    """AdamW with warm-up and linear decay, as BERT and ALBERT are fine-tuned.

    Args:
        learning_rate: float. The peak.
        total_steps: optional int. Training steps until the rate is 0; without
            it the rate is constant.
        warmup_share: float. The share of the steps in which the rate rises.
        **kwargs: passed on to `keras.optimizers.AdamW`, such as `use_ema`.

    Returns:
        An `AdamW`.

    Reference:
        google-research/albert `optimization.py`.
    """
    if total_steps:
        learning_rate = WarmupLinearDecay(
            learning_rate, total_steps, int(total_steps * warmup_share)
        )
    else:
        # A schedule too, for an optimizer keeps a plain rate as one more
        # variable, and could not load the state of one with a schedule.
        learning_rate = keras.optimizers.schedules.PolynomialDecay(
            learning_rate, decay_steps=1, end_learning_rate=learning_rate
        )
    return AdamW(
        learning_rate,
        weight_decay=0.01,
        epsilon=1e-6,
        global_clipnorm=1.0,
        **kwargs,
    )
