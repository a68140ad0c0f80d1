import keras
from keras import ops

from albert_tf.layers.private_keras import variable_index

# Biases and LayerNorm: "LayerNorm", "layer_norm" and "bias" in `create_optimizer` of
# google-research/albert `optimization.py`.
EXCLUDED = ("bias", "gamma", "beta")
# Query, key and value are three variables with three ratios in the original;
# `AttentionBlock` holds them in one.
FUSED = "query_key_value/kernel"


@keras.saving.register_keras_serializable(package="albert_tf")
class Lamb(keras.optimizers.Optimizer):
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
        name: string.
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
        learning_rate=0.00176,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        weight_decay=0.01,
        name="lamb",
        **kwargs,
    ):
        # Keras would apply its `weight_decay` outside of the ratio.
        super().__init__(learning_rate, name=name, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.weight_decay_rate = weight_decay or 0.0

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        # `update_step` receives TensorFlow's variables, which have no path.
        self._is_excluded = [x.path.endswith(EXCLUDED) for x in variables]
        self._parts = [3 if x.path.endswith(FUSED) else 1 for x in variables]

    def update_step(self, gradient, variable, learning_rate):
        index = variable_index(self, variable)
        momentum, velocity = self._momentums[index], self._velocities[index]
        # At least float32 for sums of squares, as in the original.
        dtype = keras.backend.result_type(
            keras.backend.standardize_dtype(variable.dtype), "float32"
        )
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

    def get_config(self):
        config = super().get_config()
        config.update(
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            weight_decay=self.weight_decay_rate,
        )
        return config


def _times_trust_ratio(update, w, parts):
    """Return the update times norm(w) / norm(update), separately for each part."""
    shape = (-1, parts, _width(update) // parts)
    update_parts, w_parts = (ops.reshape(x, shape) for x in (update, w))
    update_norm, w_norm = (
        ops.sqrt(ops.sum(ops.square(x), axis=(0, 2), keepdims=True))
        for x in (update_parts, w_parts)
    )
    both = ops.logical_and(update_norm > 0, w_norm > 0)
    ratio = ops.where(both, w_norm / ops.where(both, update_norm, 1.0), 1.0)
    return ops.reshape(update_parts * ratio, update.shape)


def _width(x):
    """Return the length of the last axis; 1 for a scalar."""
    return (1, *x.shape)[-1]
