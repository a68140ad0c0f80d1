"""LAMB and AdamW, with warm-up and linear decay of the learning rate."""

from typing import Any

import keras
from keras import ops

from albert_tf.layers.private_keras import adam_moments, variable_index
from albert_tf.layers.tensor_types import Tensor, at_least_float32
from albert_tf_lite.errors import AlbertError

# Biases and LayerNorm, as in google-research/albert `optimization.py`.
NOT_DECAYED = ("bias", "gamma", "beta")
# One variable in `AttentionBlock`, but three with a ratio each in the original.
FUSED = "query_key_value/kernel"


def warmup_linear_share(step: Tensor, total_steps: Tensor, warmup_steps: Tensor):
    """Return the share of the peak at a step: linearly up from 0, then down to 0."""
    # Counted from 1, so that the first step has a rate above 0.
    step = ops.cast(step, "float32") + 1.0
    warmup = step / ops.maximum(ops.cast(warmup_steps, "float32"), 1.0)
    end = ops.cast(total_steps, "float32") + 1.0
    decay = (end - step) / (end - ops.cast(warmup_steps, "float32"))
    return ops.clip(ops.minimum(warmup, decay), 0.0, 1.0)


def warmup_of(total_steps: int, share: float = 0.1) -> int:
    """Return the number of steps in which the rate rises, by default a tenth."""
    return int(total_steps * share)


@keras.saving.register_keras_serializable(package="albert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that rises linearly from 0 and falls linearly to 0.

    Args:
        peak_learning_rate: float.
        total_steps: int. Steps until 0 is reached; 0 for a constant rate.
        warmup_steps: int. Steps until the peak is reached.

    Reference:
        google-research/bert `optimization.py`, `create_optimizer`.
    """

    def __init__(self, peak_learning_rate: float, total_steps: int, warmup_steps: int):
        if not 0 <= warmup_steps <= total_steps:
            raise AlbertError(
                "`warmup_steps` must be from 0 to `total_steps`. Received: "
                f"warmup_steps={warmup_steps}, total_steps={total_steps}"
            )
        self.peak_learning_rate = peak_learning_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        if not self.total_steps:
            return ops.cast(self.peak_learning_rate, "float32")
        return self.peak_learning_rate * warmup_linear_share(
            step, self.total_steps, self.warmup_steps
        )

    def get_config(self) -> dict[str, Any]:
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable(package="albert_tf")
class AdjustableDecay(WarmupLinearDecay):
    """`WarmupLinearDecay` whose peak and steps can be set after the first step.

    They are variables, so a training step on TensorFlow reads new values without being
    compiled or traced again. On other backends, call `make_train_function(force=True)`
    after `set`. The config has the current values.

    Args:
        peak_learning_rate: float.
        total_steps: int. Steps until 0 is reached; 0 for a constant rate.
        warmup_steps: int. Steps until the peak is reached.
    """

    def __init__(
        self, peak_learning_rate: float, total_steps: int = 0, warmup_steps: int = 0
    ):
        super().__init__(peak_learning_rate, total_steps, warmup_steps)
        self._variables = {
            name: keras.Variable(
                value,
                dtype="float32",
                trainable=False,
                aggregation="only_first_replica",
                name=name,
            )
            for name, value in self.get_config().items()
        }

    def set(
        self, peak_learning_rate: float, total_steps: int = 0, warmup_steps: int = 0
    ) -> None:
        """Set the peak and the steps, as of the constructor."""
        super().__init__(peak_learning_rate, total_steps, warmup_steps)
        for name, value in self.get_config().items():
            self._variables[name].assign(value)

    def __call__(self, step):
        peak, total_steps, warmup_steps = self._variables.values()
        share = warmup_linear_share(step, total_steps, warmup_steps)
        return peak * ops.where(total_steps > 0, share, 1.0)


@keras.saving.register_keras_serializable(package="albert_tf")
class Lamb(keras.optimizers.Lamb):
    """LAMB as ALBERT was pretrained with it.

    A step on the weights w of a variable, with the gradient g:

    ```
    m = beta_1 * m + (1 - beta_1) * g
    v = beta_2 * v + (1 - beta_2) * g**2
    update = m / (sqrt(v) + epsilon) + weight_decay * w
    w = w - learning_rate * norm(w) / norm(update) * update
    ```

    The trust ratio norm(w) / norm(update) is 1 where either norm is 0. Biases and
    LayerNorm are not decayed, and their ratio is 1. Keras' `Lamb` decays the weights
    outside of the ratio and corrects the bias of m and v; the original does neither.

    Args:
        learning_rate: float, or a `keras.optimizers.schedules.LearningRateSchedule`.
            The default is the paper's, at a batch size of 4,096.
        beta_1: float. Decay of the mean gradient m.
        beta_2: float. Decay of the mean squared gradient v.
        epsilon: float. Added to sqrt(v).
        weight_decay: optional float. Share of the weights in the update. Kept as
            `weight_decay_rate`; Keras' attribute `weight_decay` is `None`.
        **kwargs: other arguments of `keras.optimizers.Optimizer`, such as
            `global_clipnorm` (1.0 in the original) and `gradient_accumulation_steps`.

    Example:
    ```python
    # As ALBERT was: 125,000 steps, the learning rate rising in the first 3,125.
    schedule = albert_tf.training.WarmupLinearDecay(0.00176, 125_000, 3_125)
    pretrainer.compile(albert_tf.training.Lamb(schedule, global_clipnorm=1.0))
    ```

    Reference:
        google-research/albert `lamb_optimizer.py`;
        [LAMB, algorithm 2](https://arxiv.org/abs/1904.00962);
        [ALBERT, section 4.1](https://arxiv.org/abs/1909.11942).
    """

    def __init__(
        self,
        learning_rate: Any = 0.00176,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        weight_decay: float | None = 0.01,
        **kwargs: Any,
    ):
        # Keras would apply its `weight_decay` outside of the ratio.
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **kwargs)
        self.weight_decay_rate = weight_decay or 0.0

    def build(self, variables):
        super().build(variables)
        # `update_step` receives TensorFlow's variables, which have no path.
        self._is_excluded = [x.path.endswith(NOT_DECAYED) for x in variables]
        self._parts = [3 if x.path.endswith(FUSED) else 1 for x in variables]

    def update_step(
        self, gradient: Tensor, variable: Tensor, learning_rate: Tensor
    ) -> None:
        index = variable_index(self, variable)
        momentum, velocity = adam_moments(self, variable)
        # At least float32 for sums of squares, as in the original.
        dtype = at_least_float32(keras.backend.standardize_dtype(variable.dtype))
        w, m, v = (ops.cast(x, dtype) for x in (variable, momentum, velocity))
        # TensorFlow's gradient of an embedding may be sparse. Reshaping makes it dense
        # and sums repeated rows.
        g = ops.cast(ops.reshape(gradient, variable.shape), dtype)

        m = self.beta_1 * m + (1.0 - self.beta_1) * g
        v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(g)
        self.assign(momentum, m)
        self.assign(velocity, v)
        update = m / (ops.sqrt(v) + self.epsilon)
        if not self._is_excluded[index]:
            update = update + self.weight_decay_rate * w
            update = _times_trust_ratio(update, w, self._parts[index])
        self.assign(variable, w - ops.cast(learning_rate, dtype) * update)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "weight_decay": self.weight_decay_rate}


def _times_trust_ratio(update: Any, w: Any, parts: int) -> Any:
    """Return the update times norm(w) / norm(update), separately for each part."""
    # A scalar has no last axis.
    shape = (-1, parts, (1, *w.shape)[-1] // parts)
    update_parts, w_parts = (ops.reshape(x, shape) for x in (update, w))
    update_norm, w_norm = (
        ops.sqrt(ops.sum(ops.square(x), axis=(0, 2), keepdims=True))
        for x in (update_parts, w_parts)
    )
    both = ops.logical_and(update_norm > 0, w_norm > 0)
    ratio = ops.where(both, w_norm / ops.where(both, update_norm, 1.0), 1.0)
    return ops.reshape(update_parts * ratio, update.shape)


@keras.saving.register_keras_serializable(package="albert_tf")
class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW without weight decay of biases and LayerNorm.

    A class, since Keras does not save the arguments of `exclude_from_weight_decay`. On
    TensorFlow one kernel updates a variable; Keras needs a dozen.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)

    def update_step(
        self, gradient: Tensor, variable: Tensor, learning_rate: Tensor
    ) -> None:
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


# Maximum width, and the rates from a checkpoint and from random weights.
_RATES = (
    (128, 1e-3, 1e-3),
    (256, 5e-4, 5e-4),  # The best of three on the dev set of the demo.
    (384, 1e-4, 3e-4),  # albert_zh's README.
    (1024, 3e-5, 3e-5),  # The paper. From random weights 5e-5 is too high.
    (float("inf"), 1e-5, 1e-5),
)


def fine_tuning_learning_rate(hidden_dim: int, random_weights: bool = False) -> float:
    """Return a learning rate by the width and the initial weights of a model."""
    for width, fine_tuned, initial in _RATES:
        if hidden_dim <= width:
            return initial if random_weights else fine_tuned
    raise AssertionError("The last width is infinite.")


def lower_learning_rate(rate: float, examples: int) -> float:
    """Return a learning rate for examples of labels that a model has learned.

    Below 800 it is in proportion to them, a tenth for 450. Otherwise a model would
    learn their mistakes.
    """
    return rate * examples / 4_500 if examples < 800 else rate


def fine_tuning_epochs(examples: int) -> int:
    """Return a number of epochs by that of the training examples: 3 to 30."""
    return min(max(round(4_500 / max(examples, 1)), 3), 30)


def fine_tuning_batch_size(examples: int) -> int:
    """Return a batch size by the number of training examples."""
    return 16 if examples < 10_000 else 32


OPTIMIZERS = {"lamb": Lamb, "adamw": AdamW}


def scheduled_optimizer(
    name: str,
    learning_rate: float,
    total_steps: int | None = None,
    warmup_share: float = 0.1,
    ema_momentum: float | None = None,
    **kwargs: Any,
) -> keras.optimizers.Optimizer:
    """Return an optimizer as ALBERT is trained with, with warm-up and linear decay.

    Args:
        name: `"lamb"`, as ALBERT was pretrained with, or `"adamw"`.
        learning_rate: float, the peak.
        total_steps: optional int. Batches until the rate is 0, also if several are one
            update; by default the rate is constant.
        warmup_share: float. Share of the steps in which the rate rises.
        ema_momentum: optional float below 1, such as 0.999, to average the weights: the
            share of the previous value in their moving average, per batch.
        **kwargs: other arguments of the optimizer, instead of those of the original,
            such as `gradient_accumulation_steps`, the number of batches per update.

    Example:
    ```python
    optimizer = albert_tf.training.scheduled_optimizer(
        "lamb", 1e-3, total_steps=10_000, ema_momentum=0.999
    )
    ```

    Reference:
        google-research/albert `optimization.py`.
    """
    steps = total_steps or 0
    warmup_steps = warmup_of(steps, warmup_share)
    # Also a constant rate is a schedule: a plain one would be one more variable in the
    # state of the optimizer.
    schedule = WarmupLinearDecay(learning_rate, steps, warmup_steps)
    return optimizer_with(name, schedule, ema_momentum, **kwargs)


def optimizer_with(
    name: str,
    schedule: WarmupLinearDecay,
    ema_momentum: float | None = None,
    **kwargs: Any,
) -> keras.optimizers.Optimizer:
    """Return an optimizer as ALBERT is trained with, of a schedule.

    The arguments are those of `scheduled_optimizer`.
    """
    settings = {"weight_decay": 0.01, "epsilon": 1e-6, "global_clipnorm": 1.0}
    if ema_momentum is not None:
        settings.update(use_ema=True, ema_momentum=ema_momentum)
    return OPTIMIZERS[name](schedule, **{**settings, **kwargs})


def unscaled_optimizer(
    optimizer: keras.optimizers.Optimizer,
) -> keras.optimizers.Optimizer:
    """Return the optimizer inside a `LossScaleOptimizer`, or the optimizer itself.

    Keras wraps the optimizer of a model that computes in float16.
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return optimizer.inner_optimizer
    return optimizer
