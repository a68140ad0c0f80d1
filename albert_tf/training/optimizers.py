"""The optimizer recipe ALBERT is fine-tuned with."""

from typing import Any

import keras
from keras import ops

from albert_tf.layers.private_keras import adam_moments
from albert_tf.training.schedules import WarmupLinearDecay

WARMUP_SHARE = 0.1
# Biases and LayerNorm are not decayed (`exclude_from_weight_decay` of the
# original `run_classifier.py`).
NOT_DECAYED = ("bias", "gamma", "beta")


@keras.saving.register_keras_serializable(package="albert_tf")
class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW that decays neither biases nor LayerNorm.

    A class, since Keras does not save what `exclude_from_weight_decay` was given. On
    TensorFlow a variable is updated by one kernel, where Keras' takes a dozen.

    Args:
        task_settings: optional dict, what a task that made it was compiled with.
        *args, **kwargs: as `keras.optimizers.AdamW` takes them.
    """

    def __init__(self, *args, task_settings: dict | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        self.task_settings = task_settings
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)

    def update_step(self, gradient, variable, learning_rate):
        if keras.backend.backend() != "tensorflow" or self.amsgrad:
            return super().update_step(gradient, variable, learning_rate)
        from tensorflow import raw_ops

        momentum, velocity = adam_moments(self, variable)
        dtype = keras.backend.standardize_dtype(variable.dtype)
        beta_1, beta_2 = (ops.cast(x, dtype) for x in (self.beta_1, self.beta_2))
        step = ops.cast(self.iterations + 1, dtype)
        raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=momentum.value.handle,
            v=velocity.value.handle,
            beta1_power=ops.power(beta_1, step),
            beta2_power=ops.power(beta_2, step),
            lr=ops.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=ops.cast(self.epsilon, dtype),
            # Reshaping makes a sparse gradient dense, its repeated rows summed.
            grad=ops.reshape(ops.cast(gradient, dtype), variable.shape),
        )

    def get_config(self):
        return {**super().get_config(), "task_settings": self.task_settings}


# By width up to so much: from a checkpoint, from random weights.
_RATES = (
    (128, 1e-3, 1e-3),
    # The best of three on the demo's dev set.
    (256, 5e-4, 5e-4),
    # albert_zh's README.
    (384, 1e-4, 3e-4),
    # The paper. From random weights base stays where it is at 5e-5 and more.
    (1024, 3e-5, 3e-5),
    (float("inf"), 1e-5, 1e-5),
)


def fine_tuning_learning_rate(hidden_dim: int, random_weights: bool = False) -> float:
    """A learning rate by size, and by what the training starts from."""
    return next(rates[random_weights] for w, *rates in _RATES if hidden_dim <= w)


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
