"""The default optimizer of a task, whose schedule follows the steps of each `fit`."""

from collections.abc import Callable
from typing import Any

import keras

from albert_tf.layers.private_keras import moving_averages
from albert_tf.training.optimizers import scheduled_optimizer, unscaled_optimizer
from albert_tf_lite.errors import AlbertError

# Callbacks that set the learning rate, which Keras refuses if it has a schedule.
_RATE_CALLBACKS = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


class AutoOptimizer:
    """AdamW whose rate rises and falls with the steps of one `fit`.

    Args:
        recompile: function of `optimizer=` that compiles the model again.
        has_default_rate: bool. The rate was not given, and each `fit` may choose one.
        **settings: arguments of `scheduled_optimizer`, which `compile` stores.
    """

    def __init__(
        self,
        recompile: Callable[..., None],
        has_default_rate: bool = False,
        **settings: Any,
    ):
        self.settings = settings
        self.has_default_rate = has_default_rate
        self._recompile = recompile
        self._built: tuple[int, float] | None = None

    def build(
        self, steps: int | None = None, **settings: Any
    ) -> keras.optimizers.Optimizer:
        """Return the optimizer for a number of steps, by default of constant rate."""
        settings = {**self.settings, **settings}
        return scheduled_optimizer("adamw", total_steps=steps, **settings)

    def check_callbacks(self, callbacks: Any) -> None:
        """Raise if a callback would set the rate that the schedule sets."""
        for callback in keras.tree.flatten(callbacks):
            if isinstance(callback, _RATE_CALLBACKS):
                rate = self.settings["learning_rate"]
                raise AlbertError(
                    f"{type(callback).__name__} cannot set the learning rate, because "
                    "the default optimizer has a schedule. First call "
                    f"compile(optimizer=keras.optimizers.AdamW({rate}))."
                )

    def schedule(
        self,
        model: keras.Model,
        steps_per_epoch: int,
        epochs: int,
        initial_epoch: int = 0,
        learning_rate: float | None = None,
    ) -> None:
        """Set the schedule of a model for the steps of one `fit`.

        The rate is constant if `steps_per_epoch` is 0, unknown. `epochs` include those
        before `initial_epoch`, where a resumed `fit` starts. `learning_rate` is the
        peak of this `fit`, by default that of the settings.
        """
        # Keras' schedules count batches, even if several are one update.
        steps = steps_per_epoch * epochs
        rate = learning_rate or self.settings["learning_rate"]
        if (steps, rate) == self._built:
            # Reset without tracing the training step again. A scale of the loss, which
            # is not among these variables, suits the model and stays.
            for variable in unscaled_optimizer(model.optimizer).variables:
                variable.assign(keras.ops.zeros_like(variable))
        else:
            self._recompile(optimizer=self.build(steps, learning_rate=rate))
            self._built = steps, rate
        optimizer = unscaled_optimizer(model.optimizer)
        # The first variable counts batches; `iterations` are updates.
        optimizer.variables[0].assign(steps_per_epoch * initial_epoch)
        if initial_epoch and optimizer.use_ema:
            # Keras starts an average from the weights only at the very first step.
            optimizer.build(model.trainable_variables)
            averages = moving_averages(optimizer)
            weights = model.trainable_variables
            for average, weight in zip(averages, weights, strict=True):
                average.assign(weight)
