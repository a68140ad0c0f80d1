"""AdamW with warm-up and linear decay, as ALBERT is fine-tuned."""

from typing import Any

import keras
from keras import ops

from albert_tf.layers.private_keras import adam_moments
from albert_tf_lite.errors import AlbertError

WARMUP_SHARE = 0.1
# Biases and LayerNorm are not decayed (`exclude_from_weight_decay` of the
# original `run_classifier.py`).
NOT_DECAYED = ("bias", "gamma", "beta")


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
        # Counted from 1, so that the first step has a rate above 0.
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


@keras.saving.register_keras_serializable(package="albert_tf")
class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW without weight decay of biases and LayerNorm.

    A class, since Keras does not save the arguments of `exclude_from_weight_decay`. On
    TensorFlow one kernel updates a variable; Keras needs a dozen.

    Args:
        task_settings: optional dict, the settings with which a task was compiled.
        *args, **kwargs: arguments of `keras.optimizers.AdamW`.
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


# Maximum width, and the rates from a checkpoint and from random weights.
_RATES = (
    (128, 1e-3, 1e-3),
    # The best of three on the dev set of the demo.
    (256, 5e-4, 5e-4),
    # albert_zh's README.
    (384, 1e-4, 3e-4),
    # The paper. From random weights the base size does not learn at 5e-5 and more.
    (1024, 3e-5, 3e-5),
    (float("inf"), 1e-5, 1e-5),
)


def fine_tuning_learning_rate(hidden_dim: int, random_weights: bool = False) -> float:
    """Return a learning rate by the size and the start of the training."""
    return next(rates[random_weights] for w, *rates in _RATES if hidden_dim <= w)


def adamw(
    learning_rate: float,
    total_steps: int | None = None,
    warmup_share: float = WARMUP_SHARE,
    **kwargs: Any,
) -> AdamW:
    """Return AdamW with warm-up and linear decay, as ALBERT is fine-tuned.

    Args:
        learning_rate: float. The peak.
        total_steps: optional int. Steps until the rate is 0; by default the rate is
            constant.
        warmup_share: float. The share of the steps in which the rate rises.
        **kwargs: other arguments of `keras.optimizers.AdamW`, such as `use_ema`.

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
        # Also a schedule: with a plain rate the optimizer has one more variable and
        # cannot load the state of one with a schedule.
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
